"""Events of agents that work on a copy of the project.

An agent is either a program of the user (the setting `proposer.command`) or a model that calls tools.
"""

from __future__ import annotations

from suture.core.ledger.event import Payload


class ProposerRan(Payload, kind="proposer.ran"):
    """The user's program worked on a copy of the project and has ended.

    Attributes:
        turn: Number of the turn, from 1.
        command: Command line of the program.
        outside: Whether it ran outside the sandbox.
        ending: How it ended: `exit` by itself, `timeout`, `not_started`, `memory`, or `killed` by the
            sandbox.
        exit_code: Exit code; null if it is not known.
        seconds: Wall-clock seconds.
        printed_bytes: Size of its output.
        output: Blob of the beginning and the end of its output.
        changes: Blob of its changes, path -> text.
        changed: Paths of the changed files.
        deleted: Files that it deleted; a candidate keeps them.
        excluded_files: Changed files that are not part of the candidate: too large, not text, or hidden
            files of the program itself.
    """

    turn: int
    command: str
    outside: bool = False
    ending: str
    exit_code: int | None
    seconds: float
    printed_bytes: int
    output: str
    changes: str
    changed: tuple[str, ...]
    deleted: tuple[str, ...] = ()
    excluded_files: tuple[str, ...] = ()


class AgentStepped(Payload, kind="agent.stepped"):
    """A model that works with tools took one step.

    Attributes:
        turn: Number of the turn, from 1.
        number: Number of the step in that turn, from 1.
        tool: Tool that the model used; empty if its reply named no tool.
        input: Input of the tool, truncated if it is long.
        observation: Blob of the tool's answer.
        changes: Blob of all changes of the model so far, path -> text.
        seconds: Wall-clock seconds of the tool.
        ending: Why this was the last step: the model `submitted` its work, all tests `passed`, too many
            replies were `malformed`, or the steps `repeated` themselves. Empty if the turn continues, or
            ended because no step was left.
    """

    turn: int
    number: int
    tool: str
    input: str
    observation: str
    changes: str
    seconds: float
    ending: str = ""

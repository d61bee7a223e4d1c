"""What an agent did with a copy of the project: a program of the user's, or a model with tools."""

from __future__ import annotations

from suture.core.ledger.event import Payload


class ProposerRan(Payload, kind="proposer.ran"):
    """The user's program worked on a copy of the project and has ended.

    Attributes:
        turn: Its number, from 1.
        command: The line.
        outside: Whether it ran on the machine itself, without a wall.
        ended: `exit` by itself, `timeout`, `unstarted`, `memory`, or `killed` by the wall.
        code: Its exit code; null where it is not known.
        seconds: Wall-clock seconds.
        printed_bytes: How much it printed.
        output: Blob of head and tail of that.
        changes: Blob of what it changed, path -> text.
        changed: Paths of these.
        deleted: Files that it deleted; a candidate leaves them where they are.
        left_out: Changed files that are no part of the candidate: too large, no text, hidden ones of its own.
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
        turn: The turn, from 1.
        number: Of the step in it, from 1.
        tool: What it used; empty where its reply named no tool.
        input: What it gave, cut where it is long.
        observation: Blob of what it was told.
        changes: Blob of all that it has changed up to now, path -> text.
        seconds: Wall-clock seconds of the tool.
        ended: Why it was the last step: `submitted`, all tests `passed`, `malformed`, `repeated`; empty
            where the turn goes on, or ended because no step was left.
    """

    turn: int
    number: int
    tool: str
    input: str
    observation: str
    changes: str
    seconds: float
    ending: str = ""

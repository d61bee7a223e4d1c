"""Events of agents that work on a copy of the project.

An agent is either a program of the user (the setting `proposer.command`) or a model that calls tools.
"""

from __future__ import annotations

from typing import Literal

from suture.core.ledger.event import Payload
from suture.core.records.judgement import FindingCode, JudgementOutcome

AgentProblem = Literal["", "not_applied", "no_change", "same_patch", "cut", "empty"]
"""Why a model's reply in a conversation achieved nothing."""
AgentEnding = Literal["", "passed", "asks", "stalled", "repeated", "unusable"]
"""Why a step of a conversation was the last one of its turn."""


class ProposerRan(Payload, kind="proposer.ran"):
    """The user's program worked on a copy of the project and has ended.

    Attributes:
        turn: Number of the turn, from 1.
        command: Command line of the program.
        outside: Whether it ran outside the sandbox.
        ending: How it ended: `exit` on its own, `timeout`, `not_started`, `memory`, or `killed` by the
            sandbox.
        exit_code: Exit code; null if it is not known.
        seconds: Wall-clock seconds.
        printed_bytes: Size of its output.
        output: Blob of the beginning and the end of its output.
        changes: Blob of its changes, path -> text; null for a deleted file.
        changed: Paths of the changed files.
        deleted: Files that it deleted.
        restored: Files that the user does not allow to change; they are as they were.
        excluded_files: Changed files that are not part of the change: too large, not text, or hidden
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
    restored: tuple[str, ...] = ()
    excluded_files: tuple[str, ...] = ()


class ChangeJudged(Payload, kind="change.judged"):
    """What the user's program has changed until the end of a turn was judged as `suture judge` does it.

    Attributes:
        turn: Number of the turn, from 1.
        outcome: The verdict on the change.
        codes: Codes of the findings that reject it.
        failing: Number of tests that fail with the change.
        judgement: Blob of the judgement.
        candidate: Blob of the changed files.
        seconds: Wall-clock seconds of the judgement.
    """

    turn: int
    outcome: JudgementOutcome
    codes: tuple[FindingCode, ...] = ()
    failing: int = 0
    judgement: str
    candidate: str
    seconds: float


class AgentBriefed(Payload, kind="agent.briefed"):
    """The conversation with a model that repairs or writes a project began.

    Attributes:
        turn: Number of the turn, from 1.
        messages: Blob of the first messages: the rules and the task.
        shown_files: Files of which they show at least a part.
    """

    turn: int
    messages: str
    shown_files: tuple[str, ...] = ()


class AgentStepped(Payload, kind="agent.stepped"):
    """A model replied in its conversation, and its reply was answered.

    Attributes:
        turn: Number of the turn, from 1.
        number: Number of the step in that turn, from 1.
        tools: Tools that the reply called, in its order.
        input: Their inputs, truncated if they are long.
        problem: Why the reply achieved nothing: an edit does not apply, the reply changes nothing, its patch was
            tried before, it was cut, or it is empty. Empty if it achieved something.
        patch: Number of the patch in that turn, from 1, if its deciding tests ran; else 0.
        passed: Number of deciding tests that pass with the patch.
        failed: Number of deciding tests that fail with the patch.
        regressed: Number of deciding tests that passed on the user's own code and do not pass with the patch.
        answer: Blob of the messages that answer the reply.
        changes: Blob of the changes that the next step begins from, path -> text.
        tested: Blob of the changes of the patch, path -> text; empty if there is none.
        verdict: Blob of the verdict on the patch; empty if there is none.
        seconds: Wall-clock seconds of the tools and tests.
        ending: Why this was the last step: every deciding test `passed`, the safety scan `asks` a person about
            the patch, several patches made no progress (`stalled`) or were `repeated`, several replies were
            `unusable`, or the model `refused` or was `filtered`. Empty if the turn continues, or ended because
            no step or no budget was left.
    """

    turn: int
    number: int
    tools: tuple[str, ...] = ()
    input: str = ""
    problem: AgentProblem = ""
    patch: int = 0
    passed: int = 0
    failed: int = 0
    regressed: int = 0
    answer: str
    changes: str
    tested: str = ""
    verdict: str = ""
    seconds: float
    ending: AgentEnding = ""

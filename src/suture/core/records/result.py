"""What a run decides and how it ends, as records: move, spend, result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from typing import Literal

from suture.core.records.reason import Reason, render_reason
from suture.core.records.task import Candidate, Evidence, Verdict

MoveKind = Literal["mutate", "sample", "repair", "agent", "stop"]
Strategy = Literal["minimal", "restructure", "guard"]
Outcome = Literal[
    "healed",
    "nothing_to_heal",
    "not_healed",
    "stuck",
    "not_a_code_fault",
    "budget_exhausted",
    "waiting",
    "infra_error",
    "cancelled",
]
FaultCause = Literal["suspect_test", "environment", "flaky", "order_dependent"]
"""Why a failing test is no fault of the code (see docs/triage.md)."""


@dataclass(frozen=True, kw_only=True)
class Move:
    """What decide asks for next.

    Attributes:
        kind: `mutate` the code that is there, `sample` afresh, `repair` a candidate, have an `agent` work on
            it with tools, or `stop`.
        parent: For a repair, and for an agent, the hash of the candidate to mend.
        strategy: For a repair, how to mend.
        temperature: Sampling temperature of the model.
        index: Distinguishes equal moves of one run, so that each gets a reply of its own.
        reason: Why this move; for `stop`, why the run ends.
        outcome: For `stop`, the outcome.
    """

    kind: MoveKind
    parent: str | None = None
    strategy: Strategy = "minimal"
    temperature: float = 0.0
    index: int = 0
    reason: Reason | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True, kw_only=True)
class Spend:
    """What a run has used.

    Attributes:
        attempts: Candidates asked of a model.
        tokens: Tokens of prompts and replies together, with what is set aside for calls that go on.
        prompt_tokens: Tokens of prompts.
        completion_tokens: Tokens of replies.
        model_calls: Calls that were answered.
        money: US dollars, with what is set aside for calls that go on.
        unpriced_calls: Calls of models whose price nobody knows; their cost is not in `money`.
        seconds: Wall-clock time.
    """

    attempts: int = 0
    tokens: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    model_calls: int = 0
    money: float = 0.0
    unpriced_calls: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Result:
    """How a run ended.

    Attributes:
        run_id: Names the run folder.
        outcome: One of the closed set.
        reason: Why the run ended so; `render_reason` makes text of it.
        cause: For `not_a_code_fault`, why no change of the code could help.
        candidate: The best candidate under the trusted order, never simply the last.
        verdict: The verdict on the candidate.
        diff: Unified diff from the task's files to the candidate's; empty where nothing changed.
        evidence: The kind of evidence of the verdict, where there is one.
        confidence: In [0, 1]; what the evidence is worth, by a fitted model (see docs/proof.md).
        warnings: Signs that the change games the tests, which lower the confidence; and what the safety scan
            says of it. They decide nothing.
        undetermined: Other changes that pass the same tests and may do otherwise, in words: the tests do not
            tell this one from them. Empty where none is known.
        degraded: Roles that failed when they were asked, so that the run went on without them.
        spend: What it cost.
    """

    run_id: str
    outcome: Outcome
    reason: Reason
    cause: FaultCause | None = None
    candidate: Candidate | None = None
    verdict: Verdict | None = None
    diff: str = ""
    evidence: Evidence | None = None
    confidence: float = 0.0
    warnings: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()
    failed_roles: tuple[str, ...] = ()
    spend: Spend = field(default_factory=Spend)

    @property
    def ok(self) -> bool:
        """Whether the user now has code that passes every trusted check."""
        return self.outcome in ("healed", "nothing_to_heal")

    def _repr_html_(self) -> str:
        """For notebooks."""
        checks = f"{len(self.verdict.passed)} pass, {len(self.verdict.failed)} fail" if self.verdict else ""
        rows = (
            ("why", render_reason(self.reason)),
            ("checks", checks),
            ("evidence", self.evidence),
            ("confidence", f"{self.confidence:.2f}" if self.confidence else ""),
            ("warnings", "\n".join(self.warnings)),
            ("not told apart from", "\n".join(self.rivals)),
            ("used", f"{self.spend.seconds:.0f} s, {self.spend.tokens:,} tokens"),
            ("run", self.run_id),
        )
        return render_html(self.outcome.replace("_", " "), rows, self.diff)


MOST_CHARS = 20_000
"""The most that is shown of a diff."""
COLOURS = (("+++", ""), ("---", ""), ("+", "#1a7f37"), ("-", "#cf222e"), ("@@", "#8250df"))
"""How a line begins -> its colour; each reads on light and on dark ground."""


def render_html(title: str, rows: Iterable[tuple[str, object]], diff: str = "") -> str:
    """A table with a title, and a diff below it.

    Args:
        title: In few words.
        rows: Name and value; those without a value are left out.
        diff: A unified diff; cut where it is long.
    """
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left;white-space:pre-wrap'>{escape(str(value))}</td></tr>"
        for name, value in rows
        if value not in ("", None, ())
    )
    shown = diff if len(diff) <= MOST_CHARS else diff[:MOST_CHARS] + "\n..."
    lines = "\n".join(map(_line, shown.splitlines()))
    code = f"<pre style='text-align:left'>{lines}</pre>" if diff else ""
    return f"<div><strong>{escape(title)}</strong><table>{cells}</table>{code}</div>"


def _line(line: str) -> str:
    colour = next((colour for start, colour in COLOURS if line.startswith(start)), "")
    return f"<span style='color:{colour}'>{escape(line)}</span>" if colour else escape(line)

"""The records of what a run decides (`Move`), what it uses (`Spend`) and what it returns (`Result`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from typing import Literal

from suture.core.records.capability import CapabilityUse
from suture.core.records.judgement import Judgement
from suture.core.records.reason import Reason, render_reason
from suture.core.records.task import Candidate, Counterexample, Evidence, Provenance, Verdict
from suture.core.tuning import MAX_HTML_DIFF_CHARS

MoveKind = Literal["investigate", "mutate", "sample", "repair", "agent", "gate", "ask", "stop"]
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
"""Why a failing test is not the code's fault (see docs/layouts.md)."""
FLAKY_CAUSES: tuple[FaultCause, ...] = ("flaky", "order_dependent")
"""Causes whose tests are investigated before the run ends."""


@dataclass(frozen=True, kw_only=True)
class Move:
    """What the policy asks for next.

    Attributes:
        kind: `investigate` flaky tests, `mutate` the existing code, draw a `sample`, `repair` a candidate,
            let an `agent` work on it with tools, `gate` the user's own program, `ask` a person which results
            are right, or `stop`.
        parent: For `repair` and `agent`, the hash of the candidate to repair.
        strategy: For `repair`, how to repair it: by the smallest change, by writing it differently, or by
            handling further inputs.
        temperature: Sampling temperature of the model.
        index: Number that makes equal moves of one run distinct, so that each gets its own reply.
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
        attempts: Candidates that models were asked for.
        tokens: Tokens of prompts and replies, including reservations for calls in progress.
        prompt_tokens: Tokens of prompts.
        completion_tokens: Tokens of replies.
        model_calls: Calls that were answered.
        money: US dollars, including reservations for calls in progress.
        unpriced_calls: Calls of models whose price is unknown; their cost is not in `money`.
        seconds: Wall-clock seconds.
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
class FailingGeneratedTest:
    """A test by a model that fails on the result. It decided nothing, because its trust is too low.

    Attributes:
        test: Source of the test.
        provenance: Which role wrote it.
        trust: Trust in [0, 1]; below `loop.trust_threshold`.
        fact: What the test saw; `None` if that is unknown.
    """

    test: str
    provenance: Provenance
    trust: float
    fact: Counterexample | None = None


@dataclass(frozen=True, kw_only=True)
class Result:
    """How a run ended.

    Attributes:
        run_id: Id of the run, which is also the name of its folder.
        outcome: How the run ended.
        reason: Why the run ended with this outcome; `render_reason` turns it into text.
        cause: For `not_a_code_fault`, why no change of the code could help.
        candidate: The best candidate, by its results in the trusted checks. It need not be the last one.
        verdict: Verdict on the candidate.
        diff: Unified diff from the task's files to the candidate's; empty if nothing changed.
        evidence: Kind of evidence of the verdict, if there is a verdict.
        confidence: Confidence in the result in [0, 1], by a fitted model (see docs/proof.md).
        warnings: Signs that the change makes the tests pass without solving the task, which lower the
            confidence, and findings of the safety scan. Warnings do not change the outcome.
        capabilities: What the change newly uses of the test machinery and the interpreter. They lower the
            confidence, and by default `suture ci` delivers no such change.
        rivals: Other changes that pass the same tests and may behave differently, in words.
        is_undetermined: Whether the tests do not decide that this repair is right: it has rivals
            between which no model has chosen, or the tests notice few deliberate mistakes in its lines.
        failing_tests: Tests by a model that fail on the result and decided nothing. They lower the confidence.
        failed_roles: Roles that failed, so that the run continued without them.
        judgement: The judgement on what the user's own program changed; `None` for other runs.
        spend: What the run used.
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
    capabilities: tuple[CapabilityUse, ...] = ()
    rivals: tuple[str, ...] = ()
    is_undetermined: bool = False
    failing_tests: tuple[FailingGeneratedTest, ...] = ()
    failed_roles: tuple[str, ...] = ()
    judgement: Judgement | None = None
    spend: Spend = field(default_factory=Spend)

    @property
    def ok(self) -> bool:
        """Whether the code now passes every trusted check."""
        return self.outcome in ("healed", "nothing_to_heal")

    def _repr_html_(self) -> str:
        """Render the result for notebooks."""
        checks = f"{len(self.verdict.passed)} pass, {len(self.verdict.failed)} fail" if self.verdict else ""
        rows = (
            ("why", render_reason(self.reason)),
            ("checks", checks),
            ("evidence", self.evidence),
            ("confidence", f"{self.confidence:.2f}" if self.confidence else ""),
            ("warnings", "\n".join(self.warnings)),
            (
                "new capabilities",
                "\n".join(f"{use.path}:{use.line}: {use.name}" for use in self.capabilities),
            ),
            ("rivals", "\n".join(self.rivals)),
            ("generated tests that fail", "\n".join(test.test for test in self.failing_tests)),
            ("used", f"{self.spend.seconds:.0f} s, {self.spend.tokens:,} tokens"),
            ("run", self.run_id),
        )
        return render_html(self.outcome.replace("_", " "), rows, self.diff)


COLOURS = (("+++", ""), ("---", ""), ("+", "#1a7f37"), ("-", "#cf222e"), ("@@", "#8250df"))
"""Beginning of a line of a diff -> its colour. Each is readable on a light and on a dark background."""


def render_html(title: str, rows: Iterable[tuple[str, object]], diff: str = "") -> str:
    """Return an HTML table with a title, and a diff below it. All values are escaped.

    Args:
        rows: Name and value of each row; rows without a value are omitted.
        diff: A unified diff, truncated if it is long.
    """
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left;white-space:pre-wrap'>{escape(str(value))}</td></tr>"
        for name, value in rows
        if value not in ("", None, ())
    )
    excerpt = diff if len(diff) <= MAX_HTML_DIFF_CHARS else diff[:MAX_HTML_DIFF_CHARS] + "\n..."
    lines = "\n".join(map(_render_line, excerpt.splitlines()))
    code = f"<pre style='text-align:left'>{lines}</pre>" if diff else ""
    return f"<div><strong>{escape(title)}</strong><table>{cells}</table>{code}</div>"


def _render_line(line: str) -> str:
    colour = next((colour for start, colour in COLOURS if line.startswith(start)), "")
    return f"<span style='color:{colour}'>{escape(line)}</span>" if colour else escape(line)

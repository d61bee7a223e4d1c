"""One task of a benchmark, whatever set it is from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from suture.core.records import Check, Task, TaskKind, content_hash, encode_record
from suture.judge import extract_asserts, extract_examples

MODULE = "solution.py"
"""The file that holds a problem's entry point."""

Regime = Literal["visible", "self", "oracle"]
"""What the loop may see: the visible checks, no check at all, or (by explicit flag only) the hidden ones."""
REGIMES: tuple[Regime, ...] = get_args(Regime)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A task with what grades it.

    Attributes:
        id: Unique in its set, such as `HumanEval/0`.
        dataset: The data set's name, such as `humaneval`.
        kind: `write`, or `heal` where code is given.
        statement: What is wanted, as the solver may read it.
        entry_point: The function or class that the checks call.
        given: The module to heal; empty for `write`.
        beside: The project's other files as given, path -> text; a solver may use and change them.
        visible: Asserts that the solver may see, as Python source; where it is empty, the examples in the
            statement.
        hidden: The test program that grades. Nothing of it may reach a solver.
        reference: A module that passes; it is never shown.
        reference_beside: Those files of `beside` that differ in the solution, where the bug is in them.
        licence: The licence of the record.
        source: Where the set comes from.
    """

    id: str
    dataset: str
    kind: TaskKind
    statement: str
    entry_point: str
    given: str = ""
    beside: Mapping[str, str] = field(default_factory=dict)
    visible: str = ""
    hidden: str = field(repr=False)
    reference: str = field(repr=False)
    reference_beside: Mapping[str, str] = field(default_factory=dict, repr=False)
    language: Literal["python"] = "python"
    licence: str
    source: str

    @property
    def content_hash(self) -> str:
        """Of everything that decides what the problem is."""
        return content_hash(encode_record(self))

    @property
    def given_files(self) -> dict[str, str]:
        """The project that a solver starts from: path -> text."""
        return {**self.beside, **({MODULE: self.given} if self.kind == "heal" else {})}

    @property
    def solution(self) -> dict[str, str]:
        """The files of the reference: path -> text."""
        return {MODULE: self.reference, **self.reference_beside}


def task_of(problem: Problem, regime: Regime = "visible") -> Task:
    """The task that a solver gets."""
    return Task(
        statement=problem.statement,
        kind=problem.kind,
        module=MODULE,
        entry_point=problem.entry_point,
        files={path: text.encode() for path, text in problem.given_files.items()},
        checks=_checks_for(problem, regime),
    )


def shows_all(problem: Problem, regime: Regime) -> bool:
    """Whether every line of the checks that grade is one that the solver gets to see.

    Args:
        problem: A task of a benchmark.
        regime: What of its checks the solver may see.
    """
    if regime != "visible":
        return regime == "oracle"
    return _lines(problem.hidden) <= _lines(problem.visible)


def _lines(source: str) -> set[str]:
    return {line.strip() for line in source.splitlines()} - {""}


def _checks_for(problem: Problem, regime: Regime) -> tuple[Check, ...]:
    if regime == "self":
        return ()
    if regime == "oracle":
        # The ancestors' way, and named so in every row: what grades is what the loop is told.
        return (Check(id="hidden tests", provenance="user", source=problem.hidden),)
    # A set that has visible checks often repeats them in its statement.
    given = extract_asserts(problem.visible, provenance="visible")
    return given or extract_examples(problem.statement, problem.entry_point)

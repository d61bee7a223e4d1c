"""A task of a benchmark, in the same form for every data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from suture.core.records import Check, Task, TaskKind, content_hash, encode_record
from suture.judge import extract_asserts, extract_examples

MODULE = "solution.py"
"""The file that has a problem's entry point."""

Regime = Literal["visible", "self", "oracle"]
"""Which checks the loop may see: the visible ones, none, or (only by an explicit flag) the hidden ones."""
REGIMES: tuple[Regime, ...] = get_args(Regime)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A task with the hidden checks that grade it.

    Attributes:
        id: Unique in its data set, such as `HumanEval/0`.
        kind: `write`, or `heal` if code is given.
        statement: What is wanted, as the solver may read it.
        entry_point: The function or class that the checks call.
        given: The module to heal; empty for `write`.
        beside: The other files of the project, path -> text; a solver may use and change them.
        visible: Asserts that the solver may see, as Python source; if empty, the examples in the statement.
        hidden: The test program that grades. Nothing of it may reach a solver.
        reference: A module that passes; no solver may see it.
        reference_beside: The files of `beside` that differ in the solution.
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
        """Hash of everything that defines the problem."""
        return content_hash(encode_record(self))

    @property
    def given_files(self) -> dict[str, str]:
        """The files that a solver starts from, path -> text."""
        return {**self.beside, **({MODULE: self.given} if self.kind == "heal" else {})}

    @property
    def solution(self) -> dict[str, str]:
        """The files of the reference solution, path -> text."""
        return {MODULE: self.reference, **self.reference_beside}


ProblemFactory = Callable[..., Problem]
"""`Problem`, with those fields filled in that are the same for the whole data set."""


def build_task(problem: Problem, regime: Regime = "visible") -> Task:
    """Return the task that a solver gets."""
    return Task(
        statement=problem.statement,
        kind=problem.kind,
        module=MODULE,
        entry_point=problem.entry_point,
        files={path: text.encode() for path, text in problem.given_files.items()},
        checks=_checks_for(problem, regime),
    )


def shows_hidden_checks(problem: Problem, regime: Regime) -> bool:
    """Return whether the solver gets to see every line of the hidden checks."""
    if regime != "visible":
        return regime == "oracle"
    return _lines(problem.hidden) <= _lines(problem.visible)


def _lines(source: str) -> set[str]:
    return {line.strip() for line in source.splitlines()} - {""}


def _checks_for(problem: Problem, regime: Regime) -> tuple[Check, ...]:
    if regime == "self":
        return ()
    if regime == "oracle":
        # This is how the programs before Suture were measured (docs/ancestors.md). Every row names the regime.
        return (Check(id="hidden tests", provenance="user", source=problem.hidden),)
    # Data sets with visible checks often repeat them in the statement, whose examples are then no further checks.
    given = extract_asserts(problem.visible, provenance="visible")
    return given or extract_examples(problem.statement, problem.entry_point)

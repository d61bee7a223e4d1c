"""Suture's own benchmark tasks, read from their folders as data and as problems."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

from suture.bench.problem import MODULE, Problem, ProblemFactory
from suture.judge import extract_examples


@dataclass(frozen=True, kw_only=True)
class PlantedFault:
    """A change in one place that makes a right project wrong.

    Attributes:
        why: What is wrong after the change, in a few words.
        old: Text that the file contains exactly once.
    """

    why: str
    file: str = MODULE
    old: str
    new: str

    def apply_to(self, project: Mapping[str, str]) -> dict[str, str]:
        """Return the project (path -> text) with the change.

        Raises:
            ValueError: The file does not contain the old text exactly once.
        """
        text = project[self.file]
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file!r} contains {self.old!r} {text.count(self.old)} times")
        return {**project, self.file: text.replace(self.old, self.new)}


@dataclass(frozen=True, kw_only=True)
class SuiteTask:
    """A task of the own suite, read from its folder.

    Attributes:
        difficulty: 1 (a small model may solve it at the first try) to 3.
        statement: The function's stub with its docstring, which contains two or three examples.
        solution: The reference project, path -> text.
        hidden: The hidden test program that grades.
        bug: The fault in the project that is to be healed.
        report: An assert that fails because of the bug, as a bug report would contain it.
        wrong: Plausible wrong solutions, as changes of the reference.
    """

    category: str
    name: str
    entry_point: str
    difficulty: int
    statement: str
    solution: Mapping[str, str]
    hidden: str
    bug: PlantedFault
    report: str
    wrong: tuple[PlantedFault, ...]

    @property
    def beside(self) -> dict[str, str]:
        """The project's files except the one with the entry point."""
        return {path: text for path, text in self.solution.items() if path != MODULE}


def load_suite_tasks() -> tuple[SuiteTask, ...]:
    """Return every task: first one of each category, then a second one of each, so any prefix is mixed."""
    categories = _sorted_subfolders(resources.files("suture.bench.suites") / "own")
    entries = [
        (index, category.name, _read_task(category.name, folder))
        for category in categories
        for index, folder in enumerate(_sorted_subfolders(category))
    ]
    return tuple(task for *_, task in sorted(entries, key=lambda entry: entry[:2]))


def _sorted_subfolders(folder: Traversable) -> list[Traversable]:
    return sorted((entry for entry in folder.iterdir() if entry.is_dir()), key=lambda entry: entry.name)


def _read_task(category: str, folder: Traversable) -> SuiteTask:
    spec = tomllib.loads((folder / "task.toml").read_text("utf-8"))
    beside = folder / "beside"
    files = sorted(beside.iterdir(), key=lambda file: file.name) if beside.is_dir() else []
    report = spec["bug"].pop("report")
    return SuiteTask(
        category=category,
        name=folder.name,
        entry_point=spec["entry_point"],
        difficulty=spec["difficulty"],
        statement=spec["statement"],
        solution={
            MODULE: (folder / MODULE).read_text("utf-8"),
            **{file.name: file.read_text("utf-8") for file in files if file.name.endswith(".py")},
        },
        hidden=(folder / "hidden.py").read_text("utf-8"),
        bug=PlantedFault(**spec["bug"]),
        report=report,
        wrong=tuple(PlantedFault(**wrong) for wrong in spec["wrong"]),
    )


def adapt_suture(task: SuiteTask, make: ProblemFactory) -> Problem:
    """Return a task to write. The docstring's examples and the existing files are visible."""
    return make(
        id=f"suture/{task.category}/{task.name}",
        kind="write",
        statement=_statement_with_files(task) if task.beside else task.statement,
        entry_point=task.entry_point,
        beside=task.beside,
        visible=_examples(task),
        hidden=task.hidden,
        reference=task.solution[MODULE],
    )


def adapt_suture_heal(task: SuiteTask, make: ProblemFactory) -> Problem:
    """Return the same task to heal: a project with one bug, which a visible failing assert reports."""
    given_files = task.bug.apply_to(task.solution)
    is_in_other_file = task.bug.file != MODULE
    return make(
        id=f"suture-heal/{task.category}/{task.name}",
        kind="heal",
        statement=task.statement,
        entry_point=task.entry_point,
        given=given_files.pop(MODULE),
        beside=given_files,
        visible=f"{_examples(task)}\n{task.report}",
        hidden=task.hidden,
        reference=task.solution[MODULE],
        reference_beside={task.bug.file: task.solution[task.bug.file]} if is_in_other_file else {},
    )


def _examples(task: SuiteTask) -> str:
    checks = extract_examples(task.statement, task.entry_point)
    return "\n".join(check.source.strip() for check in checks)


def _statement_with_files(task: SuiteTask) -> str:
    files = "\n".join(f"`{path}`:\n\n```python\n{text}```\n" for path, text in task.beside.items())
    return (
        f"Write the file `{MODULE}` of a project, with this function:\n\n"
        f"```python\n{task.statement}```\n\nThe project has these files already:\n\n{files}"
    )

"""The folders of the own suite, as data and as problems: to write a module, or to heal one."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

from suture.bench.problem import MODULE, Problem
from suture.judge import examples_in


@dataclass(frozen=True, kw_only=True)
class PlantedFault:
    """A change of one place that makes a right project wrong.

    Attributes:
        why: What is wrong then, in a few words.
        file: The file that it is in.
        old: Text that stands in it exactly once.
        new: What stands there instead.
    """

    why: str
    file: str = MODULE
    old: str
    new: str

    def made_to(self, project: Mapping[str, str]) -> dict[str, str]:
        """The project with the change.

        Args:
            project: Path -> text.

        Raises:
            ValueError: The old text does not stand there exactly once.
        """
        text = project[self.file]
        if text.count(self.old) != 1:
            raise ValueError(f"{self.old!r} stands {text.count(self.old)} times in {self.file!r}")
        return {**project, self.file: text.replace(self.old, self.new)}


@dataclass(frozen=True, kw_only=True)
class SuiteTask:
    """A task of the own suite, read from its folder.

    Attributes:
        category: Its folder, such as `intervals`.
        name: Its own folder's name.
        entry_point: The function that is asked for.
        difficulty: 1 (a small model may do it at once) to 3.
        statement: The function's stub with its docstring, which holds two or three examples.
        solution: The reference project, path -> text.
        hidden: The hidden test program, which grades.
        bug: What is wrong in the project that is given to be healed.
        report: An assert that fails because of it, as who reports the bug would write it.
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
        """The project's files but the one with the entry point."""
        return {path: text for path, text in self.solution.items() if path != MODULE}


def suite_tasks() -> tuple[SuiteTask, ...]:
    """Every task: first one of each category, then a second of each, so that any first few are mixed."""
    categories = _sorted(resources.files("suture.bench.suites") / "own")
    places = [
        (place, category.name, _task(category.name, folder))
        for category in categories
        for place, folder in enumerate(_sorted(category))
    ]
    return tuple(task for *_, task in sorted(places, key=lambda entry: entry[:2]))


def _sorted(folder: Traversable) -> list[Traversable]:
    return sorted((entry for entry in folder.iterdir() if entry.is_dir()), key=lambda entry: entry.name)


def _task(category: str, folder: Traversable) -> SuiteTask:
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


Make = Callable[..., Problem]


def suture(task: SuiteTask, make: Make) -> Problem:
    """A task to write. Visible are the examples in the docstring, and the files that are there already."""
    return make(
        id=f"suture/{task.category}/{task.name}",
        kind="write",
        statement=_among(task) if task.beside else task.statement,
        entry_point=task.entry_point,
        beside=task.beside,
        visible=_examples(task),
        hidden=task.hidden,
        reference=task.solution[MODULE],
    )


def suture_heal(task: SuiteTask, make: Make) -> Problem:
    """The same task to heal: a project with one bug. Visible is a failing assert too, which reports it."""
    given = task.bug.made_to(task.solution)
    elsewhere = task.bug.file != MODULE
    return make(
        id=f"suture-heal/{task.category}/{task.name}",
        kind="heal",
        statement=task.statement,
        entry_point=task.entry_point,
        given=given.pop(MODULE),
        beside=given,
        visible=f"{_examples(task)}\n{task.report}",
        hidden=task.hidden,
        reference=task.solution[MODULE],
        reference_beside={task.bug.file: task.solution[task.bug.file]} if elsewhere else {},
    )


def _examples(task: SuiteTask) -> str:
    checks = examples_in(task.statement, task.entry_point)
    return "\n".join(check.source.strip() for check in checks)


def _among(task: SuiteTask) -> str:
    files = "\n".join(f"`{path}`:\n\n```python\n{text}```\n" for path, text in task.beside.items())
    return (
        f"Write the file `{MODULE}` of a project, with this function:\n\n"
        f"```python\n{task.statement}```\n\nThe project has these files already:\n\n{files}"
    )

"""What is done with a project to see that it works: plain data, made of the task alone.

No name, path or word in it comes from a candidate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from suture.core.records import Provenance, Task
from suture.judge.smoke.shown_runs import shown_commands, shown_requests
from suture.project.languages import LANGUAGES, filled

Step = dict[str, Any]
OUTPUT = "smoke_output"
"""The file that a pipeline is told to write."""
STATED = "as the task shows: "
USAGE = (0, 1, 2)
"""Exit codes of a program that was called without what it needs."""


def provenance_of(check: str) -> Provenance:
    """Who says what a step of this id looks at: the statement's author, or we."""
    return "visible" if check.startswith(STATED) else "smoke"


def smoke_groups(task: Task) -> list[dict[str, Any]]:
    """What is done, in groups; each begins with a fresh copy of the project, and the first with its build.

    Args:
        task: One with a project.

    Returns:
        For each group its `steps`, and `serve`, the command of a server that they ask; see
        `smoke_program.py`.
    """
    project = task.project
    if project is None or project.kind is None:
        return []
    layout = LANGUAGES[task.language].layout
    start = list(filled(layout.start, project.name, task.module))
    build = [list(filled(words, project.name, task.module)) for words in layout.build]
    groups = [{"steps": [_run(f"it builds: {' '.join(words)}", words) for words in build], "needed": True}]
    if project.kind == "library":
        load = list(filled(layout.load, project.name, task.module))
        groups.append({"steps": [_run("it can be loaded", load)]})
    elif project.kind == "web_app":
        groups.append({"serve": start, "steps": list(_requests(task))})
    elif project.kind == "data_pipeline":
        groups += [{"steps": list(_pipeline(start, project.sample))}, {"steps": list(_typed(task, start))}]
    else:
        groups += [{"steps": list(_command(start))}, {"steps": list(_typed(task, start))}]
    return [group for group in groups if group["steps"]]


def step_ids(groups: list[dict[str, Any]]) -> list[str]:
    """The ids of all steps, in order."""
    return [step["id"] for group in groups for step in group["steps"]]


def _run(check: str, words: list[str], **wanted: Any) -> Step:
    return {"id": check, "argv": words, "call": " ".join(words), "codes": [0], **wanted}


def _command(start: list[str]) -> Iterator[Step]:
    yield _run("it prints something for --help", [*start, "--help"], prints=True)
    yield {**_run("it runs without arguments", start, prints=True), "codes": list(USAGE)}


def _pipeline(start: list[str], sample: str) -> Iterator[Step]:
    yield _run("it turns the sample data into a file", [*start, sample, OUTPUT], writes=OUTPUT)
    missing = [*start, "no_such_file.csv", OUTPUT]
    yield {**_run("it says so where there is no such data", missing), "codes": [], "fails": True}


def _requests(task: Task) -> Iterator[Step]:
    yield {"id": "it answers GET /", "ask": ["GET", "/"], "below": 500}
    for number, shown in enumerate(shown_requests(task.statement), 1):
        yield {
            "id": f"{STATED}{shown.shown} -> {shown.status} ({number})",
            "ask": [shown.method, shown.path],
            "body": shown.body,
            "status": shown.status,
            "answer": shown.answer,
        }


def _typed(task: Task, start: list[str]) -> Iterator[Step]:
    """The command lines of the statement; the first one's program is ours, whatever it is called."""
    shown = shown_commands(task.statement)
    for number, command in enumerate((one for one in shown if one.words[0] == shown[0].words[0]), 1):
        wanted = {"stdout": list(command.output)} if command.output else {}
        check = f"{STATED}{' '.join(command.words)} ({number})"
        yield _run(check, [*start, *command.words[1:]], **wanted)

"""Planning the smoke checks of a project: what is done with it to see whether it works.

The plan includes the runs that the statement shows, such as `$ todo add milk` with its output or
`GET /books -> 200 []`. It is made from the task alone: no name, path or word comes from a candidate.

A *step* is a dict with `id`, and either `argv` (a command to run, with what is expected of it) or `ask` (method and
path of a request, with what is expected of the response).
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from suture.core.records import Provenance, Task
from suture.judge.tuning import MAX_SHOWN_RUNS, MAX_STATEMENT_CHARS
from suture.project.languages import LANGUAGES, fill_placeholders

COMMAND_LINE_RE = re.compile(r"^[ \t]*\$ (\S.*)$")
REQUEST_LINE_RE = re.compile(
    r"^[ \t]*(?:[-*] )?`?(GET|POST|PUT|PATCH|DELETE) (/\S*?)`?(?:\s+(\{.*?\}|\[.*?\]))?"
    r"\s*(?:->|=>|→)\s*(\d{3})(?:\s+(\{.*\}|\[.*\]|\"[^\"]*\"))?[`.]?\s*$"
)
COMMON_TOOLS = frozenset(
    ("cat", "cd", "cp", "curl", "echo", "export", "git", "ls", "mkdir", "npm", "npx", "pip", "python", "rm")
)
"""Programs that are not the project's own."""


@dataclass(frozen=True, kw_only=True)
class ShownCommand:
    """A command line that a statement shows.

    Attributes:
        output: The lines that the program must print; empty if the statement shows none.
    """

    words: tuple[str, ...]
    output: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ShownRequest:
    """An HTTP request that a statement shows, with its response.

    Attributes:
        path: The path with its query, as the statement writes it.
        body: The request body as JSON values; `None` if none is shown.
        answer: The response body as JSON values; `None` if none is shown.
    """

    method: str
    path: str
    body: Any
    status: int
    answer: Any

    @property
    def shown(self) -> str:
        """The request as one line of text."""
        body = f" {json.dumps(self.body)}" if self.body is not None else ""
        return f"{self.method} {self.path}{body}"


def find_shown_commands(statement: str) -> tuple[ShownCommand, ...]:
    """Return the commands behind a `$`, in order; shell commands and common tools are skipped."""
    commands: list[ShownCommand] = []
    lines = statement[:MAX_STATEMENT_CHARS].splitlines()
    for index, line in enumerate(lines):
        match = COMMAND_LINE_RE.match(line)
        words = _split_command(match[1]) if match else ()
        if words and words[0] not in COMMON_TOOLS:
            commands.append(ShownCommand(words=words, output=tuple(_read_output(lines[index + 1 :]))))
    return tuple(commands[:MAX_SHOWN_RUNS])


def find_shown_requests(statement: str) -> tuple[ShownRequest, ...]:
    """Return the requests with the status of their responses, in order; invalid JSON is skipped."""
    requests: list[ShownRequest] = []
    for line in statement[:MAX_STATEMENT_CHARS].splitlines():
        if match := REQUEST_LINE_RE.match(line):
            try:
                body, answer = (json.loads(text) if text else None for text in (match[3], match[5]))
            except (ValueError, RecursionError):
                continue
            requests.append(
                ShownRequest(method=match[1], path=match[2], body=body, status=int(match[4]), answer=answer)
            )
    return tuple(requests[:MAX_SHOWN_RUNS])


def _split_command(line: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(line))
    except ValueError:
        return ()


def _read_output(lines: list[str]) -> Iterator[str]:
    """Yield the output lines up to an empty line, the next command or the end of a block."""
    for line in lines:
        if not line.strip() or COMMAND_LINE_RE.match(line) or line.strip().startswith("```"):
            return
        yield line.strip()


Step = dict[str, Any]
OUTPUT_FILE = "smoke_output"
"""The file that a pipeline is asked to write."""
STATED_PREFIX = "as the task shows: "
"""The start of the id of each step that the statement shows."""
USAGE_EXIT_CODES = (0, 1, 2)
"""Exit codes that are acceptable for a program that is started without its arguments."""


def get_step_provenance(check: str) -> Provenance:
    """Return who states what the step with this id checks: the statement's author or Suture."""
    return "visible" if check.startswith(STATED_PREFIX) else "smoke"


def plan_smoke_groups(task: Task) -> list[dict[str, Any]]:
    """Return what is done with the project, in groups that each start with a fresh copy of it.

    The first group builds the project.

    Returns:
        Each group has `steps`, and `serve`, the command of the server to query; see `smoke_program.py`.
    """
    project = task.project
    if project is None or project.kind is None:
        return []
    layout = LANGUAGES[task.language].layout
    start = list(fill_placeholders(layout.start, project.name, task.module))
    build = [list(fill_placeholders(words, project.name, task.module)) for words in layout.build]
    groups = [
        {"steps": [_make_run_step(f"it builds: {' '.join(words)}", words) for words in build], "needed": True}
    ]
    if project.kind == "library":
        load = list(fill_placeholders(layout.load_check, project.name, task.module))
        groups.append({"steps": [_make_run_step("it can be loaded", load)]})
    elif project.kind == "web_app":
        groups.append({"serve": start, "steps": list(_plan_requests(task))})
    elif project.kind == "data_pipeline":
        groups += [
            {"steps": list(_plan_pipeline_runs(start, project.sample))},
            {"steps": list(_plan_shown_commands(task, start))},
        ]
    else:
        groups += [
            {"steps": list(_plan_command_runs(start))},
            {"steps": list(_plan_shown_commands(task, start))},
        ]
    return [group for group in groups if group["steps"]]


def list_step_ids(groups: list[dict[str, Any]]) -> list[str]:
    """Return the ids of all steps, in order."""
    return [step["id"] for group in groups for step in group["steps"]]


def _make_run_step(step_id: str, words: list[str], **expectations: Any) -> Step:
    return {"id": step_id, "argv": words, "call": " ".join(words), "codes": [0], **expectations}


def _plan_command_runs(start: list[str]) -> Iterator[Step]:
    yield _make_run_step("it prints something for --help", [*start, "--help"], prints=True)
    yield {**_make_run_step("it runs without arguments", start, prints=True), "codes": list(USAGE_EXIT_CODES)}


def _plan_pipeline_runs(start: list[str], sample: str) -> Iterator[Step]:
    yield _make_run_step(
        "it turns the sample data into a file", [*start, sample, OUTPUT_FILE], writes=OUTPUT_FILE
    )
    missing = [*start, "no_such_file.csv", OUTPUT_FILE]
    yield {**_make_run_step("it says so where there is no such data", missing), "codes": [], "fails": True}


def _plan_requests(task: Task) -> Iterator[Step]:
    yield {"id": "it answers GET /", "ask": ["GET", "/"], "below": 500}
    for number, shown in enumerate(find_shown_requests(task.statement), 1):
        yield {
            "id": f"{STATED_PREFIX}{shown.shown} -> {shown.status} ({number})",
            "ask": [shown.method, shown.path],
            "body": shown.body,
            "status": shown.status,
            "answer": shown.answer,
        }


def _plan_shown_commands(task: Task, start: list[str]) -> Iterator[Step]:
    """Yield a step for each command line of the statement that starts the project.

    The project's program is the one that the first command line names, whatever that name is.
    """
    commands = find_shown_commands(task.statement)
    own_commands = [command for command in commands if command.words[0] == commands[0].words[0]]
    for number, command in enumerate(own_commands, 1):
        expectations = {"stdout": list(command.output)} if command.output else {}
        step_id = f"{STATED_PREFIX}{' '.join(command.words)} ({number})"
        yield _make_run_step(step_id, [*start, *command.words[1:]], **expectations)

"""Planning the smoke checks of a project: the steps that show whether it works.

The plan includes the runs that the statement shows, such as `$ todo add milk` with its output or
`GET /books -> 200 []`. It is made from the task alone: no name, path or word comes from a candidate.

A *step* is a dict with `id`, and either `argv` (a command to run, with what is expected of it) or `ask` (method and
path of a request, with what is expected of the response).

Running the smoke checks of a project: a trusted program inside the sandbox starts it and observes it.

`smoke_plan.py` makes the plan, a list of steps. `smoke_program.py` carries it out and writes a signed report.
"""

from __future__ import annotations

import json
import re
import secrets
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from suture.core.records import CheckOutcome, CheckStatus, Counterexample, Provenance, Task, VerdictNote
from suture.core.settings import SandboxSettings
from suture.judge.failures import decode_output, make_ending_failure
from suture.judge.runners.command_line import CommandLine, CommandRun
from suture.judge.runners.signed_lines import verified_events
from suture.judge.sandbox_programs import PRIVATE_FOLDER, drop_private_files
from suture.judge.tuning import MAX_SHOWN_RUNS, MAX_STATEMENT_CHARS, STEPS_SHARE
from suture.project.languages import LANGUAGES, Interpreter, fill_placeholders, resolve_command
from suture.project.workspace import decode_text
from suture.sandbox import BOX, RunResult, Sandbox

COMMAND_LINE_RE = re.compile(r"^[ \t]*\$ (\S.*)$")
COMMAND_IN_SENTENCE_RE = re.compile(r"`\$ ([^`\s][^`]*)`\s*(?:->|=>|→|prints|outputs|shows)\s*`([^`]+)`")
"""Within a sentence, a command counts only with its output: the words around it may say that it fails."""
REQUEST_RE = re.compile(r"(?<![\w/])(GET|POST|PUT|PATCH|DELETE) (/[^\s`{}<>]*)`?\s*")
STATUS_RE = re.compile(
    r"`?\s*(?:->|=>|→)\s*`?([1-5]\d{2})\b(?=`|\s*[{\[\"]|\s*$|\s*[.,;)]|\s+(?:and|then)\b)[`\s]*"
)
"""A status with other words behind it may be a number of something, as in `GET /items -> 100 results`."""
COMMON_TOOLS = frozenset(
    ("cat", "cd", "cp", "curl", "echo", "export", "git", "ls", "mkdir", "npm", "npx", "pip", "python", "rm")
)
"""Programs that are not the project's own."""
STATISTICS = (
    ("mean", "average", "avg"),
    ("median",),
    ("min", "minimum", "lowest", "smallest"),
    ("max", "maximum", "highest", "largest"),
    ("std", "stdev", "standard deviation", "standard_deviation"),
    ("variance", "var"),
)
"""Names of statistics. Each entry holds the words for the same one."""
LEAST_NAMED_STATISTICS = 3
"""With fewer, the words may be names of columns, such as "the min and max temperature"."""


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
    """Return the commands after a `$`, in order; shell commands and common tools are skipped.

    A command has a line of its own with its output below, or stands in a sentence: `` `$ todo` prints `0 items` ``.
    """
    commands: list[ShownCommand] = []
    lines = statement[:MAX_STATEMENT_CHARS].splitlines()
    for index, line in enumerate(lines):
        match = COMMAND_LINE_RE.match(line)
        shown = [(match[1], tuple(_read_output(lines[index + 1 :])))] if match else []
        shown += [(command, (output.strip(),)) for command, output in COMMAND_IN_SENTENCE_RE.findall(line)]
        for text, output in shown:
            words = _split_command(text)
            if words and words[0] not in COMMON_TOOLS:
                commands.append(ShownCommand(words=words, output=output))
    return tuple(commands[:MAX_SHOWN_RUNS])


def find_shown_requests(statement: str) -> tuple[ShownRequest, ...]:
    """Return the requests with the status of their responses, in order, also those within a sentence.

    A path with a placeholder, such as `/books/{id}`, is no request, and one with invalid JSON is skipped.
    """
    requests: list[ShownRequest] = []
    for line in statement[:MAX_STATEMENT_CHARS].splitlines():
        for match in REQUEST_RE.finditer(line):
            try:
                body, end = _read_json(line, match.end())
                if status := STATUS_RE.match(line, end):
                    answer, _ = _read_json(line, status.end())
                    shown = ShownRequest(
                        method=match[1], path=match[2], body=body, status=int(status[1]), answer=answer
                    )
                    requests.append(shown)
            except (ValueError, RecursionError):
                continue
    return tuple(requests[:MAX_SHOWN_RUNS])


def _read_json(line: str, start: int) -> tuple[Any, int]:
    """Return the JSON object, list or text that starts here, and where it ends; `None` if none starts here."""
    if not line.startswith(("{", "[", '"'), start):
        return None, start
    return json.JSONDecoder().raw_decode(line, start)


def find_named_statistics(statement: str) -> tuple[tuple[str, ...], ...]:
    """Return the entries of `STATISTICS` that a statement asks for; empty if it names fewer than three."""
    stated = statement[:MAX_STATEMENT_CHARS].lower()
    named = tuple(
        words for words in STATISTICS if re.search(rf"\b({'|'.join(map(re.escape, words))})\b", stated)
    )
    return named if len(named) >= LEAST_NAMED_STATISTICS else ()


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
    """Return who requires what the step with this id checks: the statement's author or Suture."""
    return "visible" if check.startswith(STATED_PREFIX) else "smoke"


def plan_smoke_groups(task: Task) -> list[dict[str, Any]]:
    """Return the steps in groups that each start with a fresh copy of the project.

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
            {"steps": list(_plan_pipeline_runs(task, start))},
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


def _plan_pipeline_runs(task: Task, start: list[str]) -> Iterator[Step]:
    assert task.project is not None
    words = [*start, task.project.sample, OUTPUT_FILE]
    yield _make_run_step("it turns the sample data into a file", words, writes=OUTPUT_FILE)
    header = decode_text(task.files.get(task.project.sample, b"")).partition("\n")[0].lower()
    named = find_named_statistics(task.statement)
    if named and not any(word in re.findall(r"\w+", header) for words in named for word in words):
        step_id = f"its result names the {', '.join(names[0] for names in named)}"
        yield _make_run_step(step_id, words, writes=OUTPUT_FILE, names=named)
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


PROGRAM_PATH = f"{PRIVATE_FOLDER}/smoke_program.py"
REPORT_PATH = f"{PRIVATE_FOLDER}/smoke_report"


@dataclass(frozen=True, kw_only=True)
class SmokeChecks:
    """The smoke checks of a task with a project.

    Attributes:
        settings: The sandbox limits; all steps together may take as long as a run of the tests.
        interpreter: The interpreter that `python` stands for, and the language's toolchain.
    """

    task: Task
    sandbox: Sandbox
    settings: SandboxSettings
    interpreter: Interpreter

    async def run(self, files: Mapping[str, bytes]) -> CommandRun:
        """Start the project that these files form, and observe it."""
        groups = plan_smoke_groups(self.task)
        result, events = await self._run_plan(files, groups)
        facts = {event["id"]: event["fact"] for event in events if "id" in event}
        outcomes = [_make_outcome(check, facts) for check in list_step_ids(groups)]
        has_finished = any(event.get("end") for event in events)
        if not has_finished and not any(outcome.status == "failed" for outcome in outcomes):
            # The program ended early, so the first step without a result, or the last step, is to blame.
            culprit = next((index for index, outcome in enumerate(outcomes) if not outcome.passed), -1)
            failure = make_ending_failure(outcomes[culprit].check_id, result)
            outcomes[culprit] = replace(outcomes[culprit], status="failed", counterexample=failure)
        return CommandRun(
            outcomes=tuple(outcomes),
            output=decode_output(result),
            notes=(VerdictNote(code="smoke_checks_only"),),
            wall_s=result.wall_s,
        )

    async def run_tests(self, files: Mapping[str, bytes]) -> RunResult:
        """Run the tests of a project with the language's usual command; its exit status is the result."""
        layout = LANGUAGES[self.task.language].layout
        name = self.task.project.name if self.task.project else ""
        argv = resolve_command(fill_placeholders(layout.tests, name, self.task.module), self.interpreter)
        return await self.sandbox.run(replace(self._line.request(drop_private_files(files)), argv=argv))

    @property
    def _line(self) -> CommandLine:
        return CommandLine(task=self.task, settings=self.settings, interpreter=self.interpreter)

    async def _run_plan(
        self, files: Mapping[str, bytes], groups: Sequence[Mapping[str, Any]]
    ) -> tuple[RunResult, list[dict[str, Any]]]:
        key, language = secrets.token_bytes(32), LANGUAGES[self.task.language]
        plan = {
            "report": f"{BOX}/{REPORT_PATH}",
            "key": key.hex(),
            "root": BOX,
            "wall_s": STEPS_SHARE * self.settings.test_timeout_s,
            "crash": language.layout.crash_marker,
            "error_line": language.error_pattern.pattern,
            "groups": [self._resolve_programs(group) for group in groups],
        }
        source = resources.files("suture.judge.smoke").joinpath("smoke_program.py").read_bytes()
        request = self._line.request(
            {**drop_private_files(files), PROGRAM_PATH: source},
            stdin=json.dumps(plan).encode(),
            collect=(REPORT_PATH,),
        )
        argv = (self.interpreter.executable, "-I", "-S", f"{BOX}/{PROGRAM_PATH}")
        result = await self.sandbox.run(replace(request, argv=argv))
        return result, list(verified_events(result.files.get(REPORT_PATH, b""), key))

    def _resolve_programs(self, group: Mapping[str, Any]) -> dict[str, Any]:
        """Return a group with the programs in its commands resolved."""
        resolved = {**group, "steps": [self._resolve_program(step, "argv") for step in group["steps"]]}
        return self._resolve_program(resolved, "serve")

    def _resolve_program(self, entry: Mapping[str, Any], key: str) -> dict[str, Any]:
        if key not in entry:
            return dict(entry)
        return {**entry, key: list(resolve_command(entry[key], self.interpreter))}


def _make_outcome(check: str, facts: Mapping[str, Mapping[str, str]]) -> CheckOutcome:
    """Return the outcome of a step; its fact is empty if it passed, and absent if it was not reached."""
    status: CheckStatus = "missing" if check not in facts else "failed" if facts[check] else "passed"
    fact, counterexample = facts.get(check), None
    if fact:
        counterexample = Counterexample(
            check_id=check,
            call=fact.get("call", ""),
            expected=fact.get("expected", ""),
            actual=fact.get("actual", ""),
            exception=fact.get("exception", ""),
        )
    return CheckOutcome(
        check_id=check,
        status=status,
        provenance=get_step_provenance(check),
        evidence="nonce",
        counterexample=counterexample,
    )

"""Values of variables, line by line, of one call of a candidate: for a debugger, and never a verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from suture.core.settings import SandboxSettings
from suture.judge.extraction.program_plans import get_module_name
from suture.judge.sandbox_programs import (
    PRIVATE_FOLDER,
    drop_private_files,
    make_program_limits,
    make_program_request,
)
from suture.project.languages import Interpreter, program_environment
from suture.project.workspace import text_of
from suture.sandbox import BOX, RunRequest, RunResult, Sandbox, mounts_for_interpreter

MOST_LINES = 60
"""Of a trace that is shown: of a longer one the middle is left out."""
SPARE_S = 2.0
"""The program ends a run itself, so that what was seen until then is not lost."""


@dataclass(frozen=True, kw_only=True)
class TraceTarget:
    """Where code is looked at.

    Attributes:
        sandbox: Where programs run.
        settings: The group `sandbox`: time and memory for each program.
        files: The project with the candidate in it.
        module: The path of the module whose names the code may use.
        interpreter: The user's, where the project has one; ours, without packages, where not.
    """

    sandbox: Sandbox
    settings: SandboxSettings
    files: Mapping[str, bytes]
    module: str
    interpreter: Interpreter | None = None


class TracedLine(BaseModel):
    """One executed line, and what it changed."""

    model_config = ConfigDict(frozen=True, strict=True)

    file: str
    function: str
    depth: int
    line: int
    changed: list[tuple[str, str]]
    note: str


class RunTrace(BaseModel):
    """What a run showed. The candidate ran in the same process, and could have written it.

    Attributes:
        ended: `returned`, `raised`, `stopped` after too many lines or seconds, or `lost` without a word.
        value: The value of the last expression, as source.
        exception: Type and message, or how it was lost.
        printed: What it printed, cut.
        entries: Executed lines: the first and the last ones.
        left_out: Lines between those; -1 where nobody knows how many.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    ended: str
    value: str = ""
    exception: str = ""
    printed: str = ""
    entries: list[TracedLine] = []
    left_out: int = 0


async def observe(probe: TraceTarget, code: str, *, setup: str = "", trace: bool = False) -> RunTrace:
    """Run a few lines beside a candidate.

    Args:
        probe: The candidate's files, its module and the sandbox to run them in.
        code: Python source; the value of its last expression is reported.
        setup: Source that runs before, untraced.
        trace: Whether to note variables line by line.

    Raises:
        SandboxError: The wall failed.
    """
    wall_s = probe.settings.check_timeout_s
    order = {
        "module": get_module_name(probe.module),
        "setup": setup,
        "code": code,
        "trace": trace,
        "seconds": max(wall_s - SPARE_S, wall_s / 2),
    }
    result = await probe.sandbox.run(_request(probe, json.dumps(order).encode(), wall_s))
    return _observation(result, wall_s)


def _request(probe: TraceTarget, stdin: bytes, wall_s: float) -> RunRequest:
    interpreter = probe.interpreter
    if interpreter is None:
        return replace(
            make_program_request("tracing.tracing_program", probe.files, probe.settings, wall_s), stdin=stdin
        )
    program = resources.files("suture.judge.tracing").joinpath("tracing_program.py").read_bytes()
    path = f"{PRIVATE_FOLDER}/tracing_program.py"
    return RunRequest(
        argv=(interpreter.executable, "-B", f"{BOX}/{path}"),
        files={**drop_private_files(probe.files), path: program},
        env=program_environment(interpreter, BOX),
        mounts=mounts_for_interpreter(interpreter),
        limits=make_program_limits(probe.settings, wall_s),
        stdin=stdin,
    )


def _observation(result: RunResult, wall_s: float) -> RunTrace:
    try:
        observed: Any = json.loads(result.stdout)
        names = tuple(TracedLine.model_fields)
        observed["entries"] = [dict(zip(names, entry, strict=True)) for entry in observed["entries"]]
        return RunTrace.model_validate_json(json.dumps(observed))
    except (ValueError, TypeError, KeyError, RecursionError, ValidationError):
        pass
    if result.status == "timeout":
        return RunTrace(ended="lost", exception=f"it did not end within {wall_s:g} s")
    return RunTrace(ended="lost", exception=f"the program ended without an answer ({result.status})")


def render_trace(seen: RunTrace, files: Mapping[str, bytes]) -> str:
    """What a run showed, for a reader: one line for each executed line, with its source and what changed.

    Args:
        seen: What one run has noted.
        files: The project, for the text of the lines.
    """
    sources = {path: text_of(content).splitlines() for path, content in files.items() if path.endswith(".py")}
    lines = [_rendered(entry, sources) for entry in seen.entries]
    if seen.left_out or len(lines) > MOST_LINES:
        head = lines[: MOST_LINES * 2 // 3]
        tail = lines[max(len(head), len(lines) - MOST_LINES // 3) :]
        missing = len(lines) - len(head) - len(tail) + max(seen.left_out, 0)
        lines = [
            *head,
            f"... {missing} or more lines ..." if seen.left_out < 0 else f"... {missing} lines ...",
        ]
        lines += tail
    return "\n".join([*lines, *_ending(seen)])


def _rendered(entry: TracedLine, sources: Mapping[str, list[str]]) -> str:
    text = sources.get(entry.file, [])
    source = text[entry.line - 1].strip() if 0 < entry.line <= len(text) else ""
    values = ", ".join(f"{name} = {value}" for name, value in entry.changed)
    indent = "  " * min(max(entry.depth - 1, 0), 6)
    if entry.note == "called":
        return f"{indent}{entry.function} is called" + (f" with {values}" if values else "")
    seen = "; ".join(part for part in (values, entry.note) if part)
    return f"{indent}line {entry.line}: {source}" + (f"   -> {seen}" if seen else "")


def _ending(seen: RunTrace) -> Iterator[str]:
    if seen.printed.strip():
        yield f"printed: {seen.printed.strip()}"
    if seen.ended == "raised":
        yield f"It raised {seen.exception}"
    elif seen.ended == "stopped":
        yield "It was stopped: it ran for too many lines or seconds, as an endless loop does."
    elif seen.ended == "lost":
        yield f"Nothing was seen: {seen.exception}"
    elif seen.value:
        yield f"The result is {seen.value}"


def find_divergence(failing: RunTrace, reference: RunTrace) -> str:
    """The first variable that has another value than in a run that went well; empty where none has.

    Variables are compared by function and name, value by value in the order in which they were given; those
    that only one of the two runs has say nothing.
    """
    good = _values(reference)
    counts: dict[tuple[str, str], int] = {}
    for entry in failing.entries:
        for name, value in entry.changed:
            key = (entry.function, name)
            at = counts.get(key, 0)
            counts[key] = at + 1
            known = good.get(key, [])
            if at < len(known) and known[at] != value:
                where = f"line {entry.line} of {entry.file}"
                return (
                    f"`{name}` in {entry.function} is {value} at {where}, and {known[at]} where it goes well"
                )
    return ""


def _values(seen: RunTrace) -> dict[tuple[str, str], list[str]]:
    values: dict[tuple[str, str], list[str]] = {}
    for entry in seen.entries:
        for name, value in entry.changed:
            values.setdefault((entry.function, name), []).append(value)
    return values

"""Run a few lines of code on a candidate, and record the values of variables line by line."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from suture.core.settings import SandboxSettings
from suture.judge.extraction.program_plans import get_module_name
from suture.judge.sandbox_programs import (
    PRIVATE_FOLDER,
    drop_private_files,
    make_program_limits,
    make_program_request,
)
from suture.judge.tuning import MAX_TRACE_LINES, TRACE_SPARE_S
from suture.project.languages import Interpreter, program_environment
from suture.project.workspace import decode_text
from suture.sandbox import BOX, RunRequest, RunResult, Sandbox, mounts_for_interpreter

TraceEnding = Literal["returned", "raised", "stopped", "lost"]
"""How a traced run ended. `stopped`: too many lines or seconds. `lost`: without an answer."""


@dataclass(frozen=True, kw_only=True)
class TraceTarget:
    """The candidate that code runs on.

    Attributes:
        files: The project with the candidate, path -> content.
        module: Path of the module whose names the code may use.
        interpreter: The project's interpreter; if it has none, Suture's own without packages.
    """

    sandbox: Sandbox
    settings: SandboxSettings
    files: Mapping[str, bytes]
    module: str
    interpreter: Interpreter | None = None


class TracedLine(BaseModel):
    """One executed line, and (name, value) of each variable that it changed."""

    model_config = ConfigDict(frozen=True, strict=True)

    file: str
    function: str
    depth: int
    line: int
    changed: list[tuple[str, str]]
    note: str


class RunTrace(BaseModel):
    """The trace of a run. The candidate ran in the tracing process and could have forged it.

    Attributes:
        value: The value of the last expression, as source.
        exception: Class and message of the exception, or why the trace was lost.
        printed: The output, cut if it is long.
        entries: The first and the last executed lines.
        omitted: Number of executed lines between those; -1 if it is not known.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    ending: TraceEnding
    value: str = ""
    exception: str = ""
    printed: str = ""
    entries: list[TracedLine] = []
    omitted: int = 0


async def run_traced_code(
    target: TraceTarget, code: str, *, setup: str = "", trace: bool = False
) -> RunTrace:
    """Run a few lines of code in the process of a candidate.

    Args:
        code: Python source; the value of its last expression is reported.
        setup: Source that runs first, without tracing.
    """
    wall_s = target.settings.check_timeout_s
    request = {
        "module": get_module_name(target.module),
        "setup": setup,
        "code": code,
        "trace": trace,
        "seconds": max(wall_s - TRACE_SPARE_S, wall_s / 2),  # at least half of a short limit
    }
    result = await target.sandbox.run(_make_request(target, json.dumps(request).encode(), wall_s))
    return _parse_trace(result, wall_s)


def _make_request(target: TraceTarget, stdin: bytes, wall_s: float) -> RunRequest:
    interpreter = target.interpreter
    if interpreter is None:
        request = make_program_request("tracing.tracing_program", target.files, target.settings, wall_s)
        return replace(request, stdin=stdin)
    program = resources.files("suture.judge.tracing").joinpath("tracing_program.py").read_bytes()
    path = f"{PRIVATE_FOLDER}/tracing_program.py"
    return RunRequest(
        argv=(interpreter.executable, "-B", f"{BOX}/{path}"),
        files={**drop_private_files(target.files), path: program},
        env=program_environment(interpreter, BOX),
        mounts=mounts_for_interpreter(interpreter),
        limits=make_program_limits(target.settings, wall_s),
        stdin=stdin,
    )


def _parse_trace(result: RunResult, wall_s: float) -> RunTrace:
    try:
        data: Any = json.loads(result.stdout)
        names = tuple(TracedLine.model_fields)
        data["entries"] = [dict(zip(names, entry, strict=True)) for entry in data["entries"]]
        return RunTrace.model_validate_json(json.dumps(data))
    except (ValueError, TypeError, KeyError, RecursionError, ValidationError):
        pass
    if result.status == "timeout":
        return RunTrace(ending="lost", exception=f"it did not end within {wall_s:g} s")
    return RunTrace(ending="lost", exception=f"the program ended without an answer ({result.status})")


def render_trace(trace: RunTrace, files: Mapping[str, bytes]) -> str:
    """Return a trace as text: one line for each executed line, with its source and the changed variables."""
    sources = {
        path: decode_text(content).splitlines() for path, content in files.items() if path.endswith(".py")
    }
    lines = [_render_line(entry, sources) for entry in trace.entries]
    if trace.omitted or len(lines) > MAX_TRACE_LINES:
        # Two thirds from the beginning, the rest from the end. Chosen by judgement; not measured.
        head = lines[: MAX_TRACE_LINES * 2 // 3]
        tail = lines[max(len(head), len(lines) - MAX_TRACE_LINES // 3) :]
        missing = len(lines) - len(head) - len(tail) + max(trace.omitted, 0)
        count = f"{missing} or more" if trace.omitted < 0 else str(missing)
        lines = [*head, f"... {count} lines ...", *tail]
    return "\n".join([*lines, *_render_ending(trace)])


def _render_line(entry: TracedLine, sources: Mapping[str, list[str]]) -> str:
    lines = sources.get(entry.file, [])
    source = lines[entry.line - 1].strip() if 0 < entry.line <= len(lines) else ""
    values = ", ".join(f"{name} = {value}" for name, value in entry.changed)
    indent = "  " * min(max(entry.depth - 1, 0), 6)  # of a deep recursion, six levels by judgement
    if entry.note == "called":
        return f"{indent}{entry.function} is called" + (f" with {values}" if values else "")
    details = "; ".join(part for part in (values, entry.note) if part)
    return f"{indent}line {entry.line}: {source}" + (f"   -> {details}" if details else "")


def _render_ending(trace: RunTrace) -> Iterator[str]:
    if trace.printed.strip():
        yield f"printed: {trace.printed.strip()}"
    if trace.ending == "raised":
        yield f"It raised {trace.exception}"
    elif trace.ending == "stopped":
        yield "It was stopped after too many lines or seconds, as in an endless loop."
    elif trace.ending == "lost":
        yield f"There is no trace: {trace.exception}"
    elif trace.value:
        yield f"The result is {trace.value}"


def find_divergence(failing: RunTrace, reference: RunTrace) -> str:
    """Return the first variable whose value differs from a run that passes, as text; empty if none differs.

    Variables are compared by function and name, value by value in order. Those that only one run has do not
    count.
    """
    # (function, variable) -> the values that it takes in the run that passes and that are not compared yet.
    expected: dict[tuple[str, str], deque[str]] = {}
    for entry in reference.entries:
        for name, value in entry.changed:
            expected.setdefault((entry.function, name), deque()).append(value)
    for entry in failing.entries:
        for name, value in entry.changed:
            remaining = expected.get((entry.function, name))
            reference_value = remaining.popleft() if remaining else value
            if reference_value != value:
                variable = f"`{name}` in {entry.function} is {value} at line {entry.line} of {entry.file}"
                return f"{variable}, and {reference_value} in the run that passes"
    return ""

"""Read the reports of linters, type checkers, formatters and compilers, one function for each format."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from suture.project.tuning import MAX_DIAGNOSTIC_CHARS, MAX_DIAGNOSTICS

ANSI_COLOUR = re.compile(r"\x1b\[[\d;]*m")
LINE_NUMBER = re.compile(r"\b(line|lines|at|column|col) \d+")
"""Matches a location in a message, such as that of an earlier definition. It moves with every edit."""
POSITION = re.compile(
    r"^(?:vet: )?(?P<file>[^\s:][^:\n]*?):(?P<line>\d{1,9})(?::(?P<column>\d{1,9}))?:\s*"
    r"(?:(?P<level>fatal error|error|warning|note)(?:\[\w+\])?:\s*)?(?P<message>\S.*)$"
)
"""Matches `file:line:column: message`, which most compilers and linters print."""
LEADING_CODE = re.compile(r"^(?P<code>[A-Z]{1,10}\d{1,6}):? +(?P<message>\S.*)$")
TRAILING_CODE = re.compile(r"^(?P<message>.*\S)\s+\[(?P<code>[\w.,/-]+)\]$")
TSC_POSITION = re.compile(
    r"^(?P<file>[^\s(][^(\n]*)\((?P<line>\d{1,9}),\d+\): (?P<level>error|warning) (?P<code>TS\d+): (?P<message>.*)$"
)
TSC_GLOBAL = re.compile(r"^error (?P<code>TS\d+): (?P<message>.*)$")
PRETTIER_SYNTAX = re.compile(
    r"^\[error\] (?P<file>[^:\n]+): (?P<message>\w*Error: .*?) ?\((?P<line>\d{1,9}):\d+\)$"
)
NOT_FORMATTED = "is not formatted"
HOOK_FAILURE = re.compile(r"^(?P<title>.*?)\.{3,}(?:\([^)]*\))?(?P<status>Passed|Failed|Skipped)\s*$")
HOOK_ID = re.compile(r"^- hook id: (?P<id>\S+)$")
HOOK_CHANGED = re.compile(r"^(?:Fixing|fixed|reformatted|Rewriting|Sorting) (?P<file>\S+)$")


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """One finding of a tool.

    Attributes:
        file: Path relative to the project; empty if the finding has no place.
        line: Line in that file, from 1; 0 if it is not known.
        code: The tool's name for the rule.
        message: What is wrong, in one line.
        is_error: Whether the tool calls it an error. Warnings decide only if the tool fails because of them.
    """

    file: str
    line: int
    code: str
    message: str
    is_error: bool = True

    @property
    def lasting_message(self) -> str:
        """The message without the numbers that move with every edit of the file."""
        return LINE_NUMBER.sub(r"\1 N", self.message)


@dataclass(frozen=True, kw_only=True)
class ToolOutput:
    """What a tool printed.

    Attributes:
        root: The folder of the project during the run.
        folder: The folder of the project in which the tool ran, relative to the project; empty for its root.
    """

    stdout: str
    stderr: str
    root: str
    folder: str = ""


ReadReport = Callable[[ToolOutput], Iterable[Diagnostic]]


def read_report(read: ReadReport, output: ToolOutput) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a run, with paths relative to the project; none if the report cannot be read."""
    plain = replace(
        output, stdout=ANSI_COLOUR.sub("", output.stdout), stderr=ANSI_COLOUR.sub("", output.stderr)
    )
    try:
        found = list(read(plain))[:MAX_DIAGNOSTICS]
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()
    return tuple(
        replace(
            diagnostic,
            file=_relative_path(diagnostic.file, output),
            message=" ".join(diagnostic.message.split())[:MAX_DIAGNOSTIC_CHARS],
        )
        for diagnostic in found
    )


def _relative_path(path: str, output: ToolOutput) -> str:
    if not path:
        return ""
    if path.startswith("/"):
        return posixpath.normpath(path).removeprefix(f"{output.root}/")
    return posixpath.normpath(posixpath.join(output.folder, path))


def read_ruff_json(output: ToolOutput) -> Iterator[Diagnostic]:
    """Read `ruff check --output-format=json`."""
    for finding in json.loads(output.stdout or "[]"):
        yield Diagnostic(
            file=finding["filename"],
            line=int(finding["location"]["row"]),
            code=finding.get("code") or "syntax",
            message=finding["message"],
        )


def read_would_reformat(output: ToolOutput) -> Iterator[Diagnostic]:
    """Read `ruff format --check`: the name of each file, or since ruff 0.15 each file with what would change."""
    title = ""
    for line in (output.stdout + "\n" + output.stderr).splitlines():
        if line.startswith("Would reformat: "):
            yield Diagnostic(
                file=line.partition(": ")[2].strip(), line=0, code="format", message=NOT_FORMATTED
            )
        elif match := re.match(r"error: Failed to parse (\S+?):(\d{1,9}):\d+: (.*)$", line):
            yield Diagnostic(file=match[1], line=int(match[2]), code="syntax", message=match[3])
        elif match := re.match(r" *--> (\S+?):(\d{1,9}):\d+$", line):
            is_layout = title.startswith("unformatted:")
            yield Diagnostic(
                file=match[1],
                line=0 if is_layout else int(match[2]),
                code="format" if is_layout else "syntax",
                message=NOT_FORMATTED if is_layout else title,
            )
        title = line


def read_positions(output: ToolOutput) -> Iterator[Diagnostic]:
    """Read lines `file:line:column: message` with a code before or after the message, on stdout or stderr."""
    for line in (output.stdout + "\n" + output.stderr).splitlines():
        if (diagnostic := read_position(line)) is not None:
            yield diagnostic


def read_position(line: str) -> Diagnostic | None:
    """Return the diagnostic of a line `file:line:column: message`; `None` for another line, and for a note."""
    match = POSITION.match(line.rstrip())
    if match is None or match["level"] == "note":
        return None
    code, message = match["level"] or "error", match["message"]
    if coded := LEADING_CODE.match(message) or TRAILING_CODE.match(message):
        code, message = coded["code"], coded["message"]
    return Diagnostic(
        file=match["file"],
        line=int(match["line"]),
        code=code,
        message=message,
        is_error=match["level"] != "warning",
    )


def read_pyright_json(output: ToolOutput) -> Iterator[Diagnostic]:
    """Read `pyright --outputjson`."""
    for finding in json.loads(output.stdout[output.stdout.index("{") :])["generalDiagnostics"]:
        if finding["severity"] in ("error", "warning"):
            yield Diagnostic(
                file=finding["file"],
                line=int(finding["range"]["start"]["line"]) + 1 if "range" in finding else 0,
                code=finding.get("rule") or "error",
                message=finding["message"],
                is_error=finding["severity"] == "error",
            )


def read_eslint_json(output: ToolOutput) -> Iterator[Diagnostic]:
    """Read `eslint --format json`."""
    for result in json.loads(output.stdout[output.stdout.index("[") :]):
        for finding in result["messages"]:
            yield Diagnostic(
                file=result["filePath"],
                line=int(finding.get("line") or 0),
                code=finding.get("ruleId") or "syntax",
                message=finding["message"],
                is_error=finding["severity"] == 2,
            )


def read_tsc(output: ToolOutput) -> Iterator[Diagnostic]:
    """Read `tsc --pretty false`."""
    for line in output.stdout.splitlines():
        if match := TSC_POSITION.match(line):
            yield Diagnostic(
                file=match["file"], line=int(match["line"]), code=match["code"], message=match["message"]
            )
        elif match := TSC_GLOBAL.match(line):
            yield Diagnostic(file="", line=0, code=match["code"], message=match["message"])


def read_prettier(output: ToolOutput) -> Iterator[Diagnostic]:
    """Read `prettier --list-different`, which names each file on stdout, and syntax errors on stderr."""
    for line in output.stdout.splitlines():
        if line.strip():
            yield Diagnostic(file=line.strip(), line=0, code="format", message=NOT_FORMATTED)
    for line in output.stderr.splitlines():
        if match := PRETTIER_SYNTAX.match(line):
            yield Diagnostic(
                file=match["file"], line=int(match["line"]), code="syntax", message=match["message"]
            )


def read_go_vet(output: ToolOutput) -> Iterator[Diagnostic]:
    """Read `go vet -json`: an object for each package, between comments and the compiler's own messages."""
    text = output.stdout + "\n" + output.stderr
    decoder, rest = json.JSONDecoder(), []
    position = 0
    while (start := text.find("\n{", position)) >= 0:
        rest.append(text[position : start + 1])
        report, length = decoder.raw_decode(text[start + 1 :])
        position = start + 1 + length
        yield from _read_vet_packages(report)
    rest.append(text[position:])
    yield from read_positions(replace(output, stdout="".join(rest), stderr=""))


def _read_vet_packages(report: Mapping[str, Any]) -> Iterator[Diagnostic]:
    for analyzers in report.values():
        for analyzer, findings in analyzers.items():
            for finding in findings if isinstance(findings, list) else ():
                file, line, *_ = finding["posn"].split(":")
                yield Diagnostic(file=file, line=int(line), code=analyzer, message=finding["message"])


def read_cargo_json(output: ToolOutput) -> Iterator[Diagnostic]:
    """Read `cargo check --message-format=json`: a line for each message of the compiler.

    With `--all-targets`, a library is compiled for its tests too, and reported twice.
    """
    known: set[tuple[str, int, str]] = set()
    for line in output.stdout.splitlines():
        event: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
        message: dict[str, Any] = event.get("message") or {}
        if event.get("reason") != "compiler-message" or message["level"] not in ("error", "warning"):
            continue
        spans = [span for span in message["spans"] if span["is_primary"]] or message["spans"]
        # Without a place, it is the summary, such as "aborting due to 2 previous errors".
        place = (spans[0]["file_name"], spans[0]["byte_start"], message["message"]) if spans else None
        if place is not None and place not in known:
            known.add(place)
            yield Diagnostic(
                file=place[0],
                line=int(spans[0]["line_start"]),
                code=(message.get("code") or {}).get("code") or message["level"],
                message=message["message"],
                is_error=message["level"] == "error",
            )


def read_pre_commit(output: ToolOutput) -> Iterator[Diagnostic]:
    """Read `pre-commit run`: for each hook that failed, the places that it names, else the hook as a whole."""
    hook, has_failed, has_place = "", False, False
    for line in [*output.stdout.splitlines(), "end...Passed"]:
        if match := HOOK_FAILURE.match(line):
            if has_failed and not has_place:
                yield Diagnostic(file="", line=0, code=hook, message="the hook failed")
            hook, has_failed, has_place = match["title"].strip(), match["status"] == "Failed", False
        elif not has_failed:
            continue
        elif match := HOOK_ID.match(line):
            hook = match["id"]
        elif match := HOOK_CHANGED.match(line.strip()):
            has_place = True
            yield Diagnostic(file=match["file"], line=0, code=hook, message="the hook changes the file")
        elif (found := read_position(line)) is not None:
            has_place = True
            yield replace(found, code=hook if found.code == "error" else f"{hook} {found.code}")

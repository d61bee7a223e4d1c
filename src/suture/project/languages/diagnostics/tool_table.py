"""The table of linters, type checkers, formatters and compilers that Suture understands."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from suture.core.records import Task
from suture.errors import UsageError
from suture.project.languages.command_prefix import find_working_folder, split_prefix
from suture.project.languages.diagnostics.reports import (
    Diagnostic,
    ReadReport,
    read_cargo_json,
    read_eslint_json,
    read_go_vet,
    read_positions,
    read_pre_commit,
    read_prettier,
    read_pyright_json,
    read_ruff_json,
    read_tsc,
    read_would_reformat,
)

PYTHON = re.compile(r"python[\d.]*")
PACKAGE_RUNNERS = ("npx", "pnpx", "bunx")
PACKAGE_RUNNER_OPTIONS = ("--yes", "-y", "--no-install", "--no", "--offline", "--")
EXECUTING_MANAGERS = ("pnpm", "yarn", "npm")


ANY_CODE = re.compile(r".*")
RUFF_CODES = re.compile(r"F\d+|E[237]\d\d|E401|W[26]\d\d")
"""Matches the codes of flake8 that ruff knows by the same names."""


@dataclass(frozen=True, kw_only=True)
class Fix:
    """A way in which a tool repairs what it reports.

    Attributes:
        subcommand: Subcommand that takes the place of the user's; empty to keep that.
        program: Another program that repairs what this tool reports; empty for the tool itself. It gets the reported
            codes and files in place of the user's arguments.
        codes: Matches the codes that the other program can repair.
    """

    arguments: tuple[str, ...] = ()
    subcommand: str = ""
    program: str = ""
    codes: re.Pattern[str] = ANY_CODE


@dataclass(frozen=True, kw_only=True)
class DiagnosticTool:
    """A linter, type checker, formatter or compiler.

    Attributes:
        name: Program and subcommand, such as `ruff check`.
        languages: The languages that it checks; empty if it checks any.
        dropped_options: Options of the user that choose another report or mode. One that ends with `=` has a value.
        required_options: One of these must be there, because the command changes files otherwise.
        excluding_options: With one of these, the command changes files, or succeeds whatever it finds.
        fixes: How it repairs what it reports, the safest way first.
        missing_codes: Codes that report a missing package and not a fault of the code.
        is_type_checker: Whether it checks types, so that a wider type silences it.
        runtime: The language whose programs it needs; empty for the language that it checks.
        reports_by_status: Whether its exit status shows whether there is a diagnostic.
        appends_arguments: Whether arguments are added at the end and not before those of the user.
    """

    name: str
    languages: tuple[str, ...] = ()
    read: ReadReport
    report_arguments: tuple[str, ...] = ()
    dropped_options: tuple[str, ...] = ()
    required_options: tuple[str, ...] = ()
    excluding_options: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    missing_codes: frozenset[str] = frozenset()
    is_type_checker: bool = False
    runtime: str = ""
    reports_by_status: bool = True
    appends_arguments: bool = False


RUFF_FIX = ("--isolated", "--preview", "--no-cache", "--fix")


def _make_cargo_tool(subcommand: str, *, fix: str) -> DiagnosticTool:
    return DiagnosticTool(
        name=f"cargo {subcommand}",
        languages=("rust",),
        read=read_cargo_json,
        report_arguments=("--message-format=json",),
        dropped_options=("--message-format=", "-q", "--quiet", "-v", "--verbose", "--color="),
        excluding_options=("--fix",),
        fixes=(Fix(subcommand=fix, arguments=("--allow-no-vcs", "--broken-code")),),
    )


SCRIPT_LANGUAGES = ("javascript", "typescript")
TOOLS: tuple[DiagnosticTool, ...] = (
    DiagnosticTool(
        name="ruff check",
        languages=("python",),
        read=read_ruff_json,
        report_arguments=("--output-format=json", "--no-cache", "--no-fix"),
        dropped_options=(
            "--output-format=", "--format=", "--unsafe-fixes", "--diff", "--statistics", "-q", "--quiet", "--watch",
            "--show-fixes",
        ),
        excluding_options=("--fix", "--fix-only", "--exit-zero", "-e", "--add-noqa"),
        fixes=(Fix(arguments=("--fix",)), Fix(arguments=("--fix", "--unsafe-fixes"))),
    ),
    DiagnosticTool(
        name="ruff format",
        languages=("python",),
        read=read_would_reformat,
        report_arguments=("--check", "--no-cache"),
        dropped_options=("--check", "--diff", "-q", "--quiet"),
        required_options=("--check", "--diff"),
        fixes=(Fix(),),
    ),
    DiagnosticTool(
        name="flake8",
        languages=("python",),
        read=read_positions,
        report_arguments=("--format=%(path)s:%(row)d:%(col)d: %(code)s %(text)s", "--color=never", "-j1"),
        dropped_options=("--format=", "--color=", "-q", "--quiet", "-j=", "--jobs=", "--statistics", "--count"),
        excluding_options=("--exit-zero",),
        fixes=(
            Fix(program="ruff", subcommand="check", arguments=RUFF_FIX, codes=RUFF_CODES),
            Fix(program="ruff", subcommand="check", arguments=(*RUFF_FIX, "--unsafe-fixes"), codes=RUFF_CODES),
        ),
    ),
    DiagnosticTool(
        name="mypy",
        languages=("python",),
        read=read_positions,
        report_arguments=(
            "--no-pretty", "--no-error-summary", "--show-column-numbers", "--show-error-codes", "--no-color-output",
            "--hide-error-context", "--cache-dir=/dev/null",
        ),
        dropped_options=("--pretty", "--output=", "-O=", "--hide-error-codes", "--cache-dir=", "--show-error-context"),
        missing_codes=frozenset(("import-untyped",)),
        is_type_checker=True,
    ),
    DiagnosticTool(
        name="pyright",
        languages=("python",),
        read=read_pyright_json,
        report_arguments=("--outputjson",),
        dropped_options=("--outputjson", "--stats", "-w", "--watch"),
        missing_codes=frozenset(("reportMissingModuleSource",)),
        runtime="javascript",
        is_type_checker=True,
    ),
    DiagnosticTool(
        name="eslint",
        languages=SCRIPT_LANGUAGES,
        read=read_eslint_json,
        report_arguments=("--format", "json"),
        dropped_options=("--format=", "-f=", "--fix-dry-run", "--cache", "--color", "--output-file=", "-o="),
        excluding_options=("--fix",),
        fixes=(Fix(arguments=("--fix",)),),
    ),
    DiagnosticTool(
        name="tsc",
        languages=SCRIPT_LANGUAGES,
        read=read_tsc,
        report_arguments=("--pretty", "false"),
        dropped_options=("--pretty", "--watch", "-w"),
        missing_codes=frozenset(("TS7016",)),
        is_type_checker=True,
        appends_arguments=True,
    ),
    DiagnosticTool(
        name="prettier",
        languages=SCRIPT_LANGUAGES,
        read=read_prettier,
        report_arguments=("--list-different",),
        dropped_options=("--check", "-c", "--list-different", "-l", "--log-level="),
        required_options=("--check", "-c", "--list-different", "-l"),
        excluding_options=("--write", "-w"),
        fixes=(Fix(arguments=("--write",)),),
    ),
    DiagnosticTool(
        name="go vet",
        languages=("go",),
        read=read_go_vet,
        report_arguments=("-json",),
        dropped_options=("-json", "-c="),
        reports_by_status=False,
    ),
    DiagnosticTool(
        name="go build",
        languages=("go",),
        read=read_positions,
        # Without the option the compiler stops after ten errors of a package.
        report_arguments=("-gcflags=-e", "-o=/dev/null"),
        dropped_options=("-o=", "-v", "-x"),
    ),
    _make_cargo_tool("check", fix="fix"),
    _make_cargo_tool("build", fix="fix"),
    _make_cargo_tool("clippy", fix="clippy --fix"),
    DiagnosticTool(
        name="pre-commit run",
        read=read_pre_commit,
        report_arguments=("--color=never",),
        dropped_options=("--color=", "-v", "--verbose", "--show-diff-on-failure"),
        fixes=(Fix(),),
    ),
)  # fmt: skip
"""The tools. Their fixes change files; everything else only reads them."""
CONFIGURATION_GLOBS = (
    "pyproject.toml", "setup.cfg", "tox.ini", ".editorconfig", "ruff.toml", ".ruff.toml", ".flake8", "mypy.ini",
    ".mypy.ini", "pyrightconfig.json", ".eslintrc*", "eslint.config.*", ".eslintignore", "tsconfig*.json",
    "jsconfig*.json", ".prettierrc*", "prettier.config.*", ".prettierignore", "package.json", "go.mod", "go.work",
    "Cargo.toml", "Cargo.lock", "clippy.toml", ".clippy.toml", "rustfmt.toml", "build.rs", ".cargo/",
    ".golangci.*", ".pre-commit-config.yaml", ".gitignore", ".gitattributes",
)  # fmt: skip
"""Globs of files that say what the tools check. No candidate may write them."""
UNSAFE_OPTIONS = frozenset(("--unsafe-fixes",))
"""Options of fixes by which a tool also makes changes that may alter what the code does."""


@dataclass(frozen=True, kw_only=True)
class ToolCommand:
    """A command that starts a tool.

    Attributes:
        prefix: The call of `env` before the command; empty if there is none.
        program: The words that start the program, such as `python -m mypy`.
        arguments: The user's arguments, with the subcommand.
    """

    tool: DiagnosticTool
    prefix: tuple[str, ...]
    program: tuple[str, ...]
    arguments: tuple[str, ...]

    def make_report_command(self) -> tuple[str, ...]:
        """Return the argument vector that makes the tool report what it finds, and change nothing."""
        return self._make(self._subcommand, self.tool.report_arguments)

    def make_fix_commands(self, reported: Iterable[Diagnostic] = ()) -> tuple[tuple[str, ...], ...]:
        """Return the argument vectors by which files are repaired, the safest one first."""
        folder = find_working_folder((*self.prefix, *self.program)) or "."
        found_in_files = [found for found in reported if found.file]
        commands: list[tuple[str, ...]] = []
        for fix in self.tool.fixes:
            subcommand = tuple(fix.subcommand.split()) or self._subcommand
            if not fix.program:
                commands.append(self._make(subcommand, fix.arguments))
                continue
            known = [found for found in found_in_files if fix.codes.fullmatch(found.code)]
            if known:
                codes = ",".join(dict.fromkeys(found.code for found in known))
                files = dict.fromkeys(posixpath.relpath(found.file, folder) for found in known)
                words = (fix.program, *subcommand, *fix.arguments, f"--select={codes}", "--", *files)
                commands.append((*self.prefix, *words))
        return tuple(commands)

    @property
    def builds_programs(self) -> bool:
        """Whether it writes files that tests may need: those of `tsc`, and programs of Go and Rust."""
        words = {*self.arguments}
        if self.tool.name == "tsc":
            return not words & {"--noEmit", "--version", "-v"}
        # `go build ./...` only writes a program if there is one package.
        return self.tool.name == "cargo build" or (
            self.tool.name == "go build" and ("-o" in words or not any("..." in word for word in words))
        )

    @property
    def _subcommand(self) -> tuple[str, ...]:
        return tuple(self.tool.name.split()[1:])

    def _make(self, subcommand: tuple[str, ...], added: tuple[str, ...]) -> tuple[str, ...]:
        own = drop_options(self.arguments[len(self._subcommand) :], self.tool.dropped_options)
        words = (*own, *added) if self.tool.appends_arguments else (*added, *own)
        return (*self.prefix, *self.program, *subcommand, *words)


def drop_options(words: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
    """Return the words without some options. An option that ends with `=` has a value, joined or as the next word."""
    flags = [option for option in options if not option.endswith("=")]
    valued = [option.rstrip("=") for option in options if option.endswith("=")]
    kept: list[str] = []
    skips_next = False
    for word in words:
        if skips_next:
            skips_next = False
        elif word in valued:
            skips_next = True
        elif word not in flags and not word.startswith(tuple(f"{option}=" for option in valued)):
            kept.append(word)
    return tuple(kept)


def find_tool(argv: Sequence[str]) -> ToolCommand | None:
    """Return the tool that a command starts, perhaps by `python -m` or a package manager; `None` if it starts none."""
    prefix, command = split_prefix(argv)
    program, arguments = _split_program(command)
    name = posixpath.basename(program[-1]) if program else ""
    for tool in TOOLS:
        expected, *subcommand = tool.name.split()
        has_required = not tool.required_options or {*tool.required_options} & {*arguments}
        is_check = has_required and not {*tool.excluding_options} & {*arguments}
        if name == expected and list(arguments[: len(subcommand)]) == subcommand and is_check:
            return ToolCommand(tool=tool, prefix=prefix, program=program, arguments=arguments)
    return None


def find_runtime_language(task: Task) -> str:
    """Return the language whose runtime the tools of a task need: pyright checks Python, but runs on Node.js."""
    found = (find_tool(argv) for argv in task.tools)
    runtimes = [command.tool.runtime for command in found if command is not None and command.tool.runtime]
    return runtimes[0] if runtimes else task.language


def require_tool(argv: Sequence[str]) -> ToolCommand:
    """Return the tool that a recorded command starts.

    Raises:
        UsageError: It starts none, so the record was made by another version.
    """
    found = find_tool(argv)
    if found is None:
        raise UsageError(f"{' '.join(argv)!r} starts no tool that this version knows", remedy="heal it again")
    return found


def _split_program(command: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (the words that start the program, its arguments). `npx` is left out: the sandbox has no network."""
    words = tuple(command)
    if not words:
        return (), ()
    name = posixpath.basename(words[0])
    if PYTHON.fullmatch(name) and words[1:2] == ("-m",) and len(words) > 2:
        return words[:3], words[3:]
    start = 0
    if name in PACKAGE_RUNNERS:
        start = 1
    elif name in EXECUTING_MANAGERS and words[1:2] == ("exec",):
        start = 2
    while 0 < start < len(words) and words[start] in PACKAGE_RUNNER_OPTIONS:
        start += 1
    return words[start : start + 1], words[start + 1 :]

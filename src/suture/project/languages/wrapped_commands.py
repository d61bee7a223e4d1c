"""Find the one test command that a wrapper runs, such as `make test`, `tox`, `nox`, `just` or a shell script.

Tests that run directly are reported one by one, and tox and nox would have to download packages first. Linters, type
checkers and compilers are treated in the same way. A wrapper that runs several test commands, or other programs, still
decides as a whole.
"""

from __future__ import annotations

import ast
import configparser
import posixpath
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

from suture.project.languages.command_prefix import ASSIGNMENT, add_prefix, split_prefix
from suture.project.languages.diagnostics.tool_table import find_tool
from suture.project.languages.language_table import detect_language, find_runner
from suture.project.languages.package_scripts import (
    FOLDER_OPTIONS,
    MAKE,
    RUNNERS,
    TASK_FILES_BY_PROGRAM,
    WORKSPACE_OPTIONS,
    find_package_lines,
    find_task_commands,
)
from suture.project.languages.python import is_pytest_command, is_test_command, pytest_equivalent
from suture.project.tuning import MAX_SHELL_SCRIPT_BYTES, MAX_TASK_INDIRECTIONS, MAX_TASK_LINES

HARMLESS = (
    ":", "echo", "printf", "true", "set", "mkdir", "pip", "pip3", "source", ".", "which", "date", "unset", "shopt",
)  # fmt: skip
"""Programs whose result does not decide, or that prepare what the sandbox already has."""
SHELLS = ("sh", "bash", "dash", "zsh")
RUN_TOOLS = ("poetry", "uv", "pdm", "pipenv", "hatch", "rye", "pixi")
"""Tools that run a command in the project's environment, as in `poetry run pytest`."""
RUN_TOOL_VALUE_OPTIONS = ("--python", "-p", "--with", "--extra", "--group", "-e", "--project", "--only-group")
TASK_TABLES = (
    ("poe", ("tool", "poe", "tasks")),
    ("pdm", ("tool", "pdm", "scripts")),
    ("hatch", ("tool", "hatch", "envs", "default", "scripts")),
    ("pixi", ("tool", "pixi", "tasks")),
    ("task", ("tool", "taskipy", "tasks")),
    ("rye", ("tool", "rye", "scripts")),
)
"""Tool -> where `pyproject.toml` defines its tasks."""
TOX_SUBSTITUTION = re.compile(
    r"\{(?:posargs(?::(?P<default>[^{}]*))?|(?P<name>toxinidir|tox_root|envpython))\}"
)
UNREADABLE = re.compile(r"\|(?!\|)|(?<!&)&(?!&)|\|\||`|\$\(|<|(?<!\d)>")
"""Matches what makes the result of a shell line differ from that of its commands, or hides what it runs."""
POSITIONAL = re.compile(r"""["']?\$(?:\*|@|\{[@*](?::[^}]*)?\}|[1-9])["']?""")
"""Matches the arguments that a script passes on; a wrapper without arguments has none."""
IGNORED_FAILURE = re.compile(r"\|\|\s*(?:true|:)\s*$")
"""Matches the end of a line that succeeds whatever its commands do."""
SILENT_PREFIX = re.compile(r"^[@+-]+\s*")
INSTALLING = re.compile(
    r"\bpip3? install\b|\b(?:npm|yarn|pnpm) (?:ci|install)\b|\b(?:uv|poetry|pdm) (?:sync|install)\b"
)


@dataclass(frozen=True, kw_only=True)
class WrappedTests:
    """The test command inside a wrapper.

    Attributes:
        command: The argument vector, as it runs in the project's folder; empty if only tools run.
        is_whole: Whether the wrapper does nothing else that decides its result, besides running `tools`, and the
            tests need nothing that these build.
        tools: The commands of linters, type checkers, formatters and compilers that it runs too.
    """

    command: tuple[str, ...]
    is_whole: bool
    tools: tuple[tuple[str, ...], ...] = ()


@dataclass
class _Findings:
    commands: list[tuple[str, ...]] = field(default_factory=list)
    tools: list[tuple[str, ...]] = field(default_factory=list)
    has_others: bool = False
    lines: int = 0


def find_wrapped_tests(argv: Sequence[str], files: Mapping[str, bytes]) -> WrappedTests | None:
    """Return what a wrapper runs: one test command, or tools; `None` for a test command itself, or several.

    Args:
        argv: The command as the user wrote it.
        files: The project's files, path -> content.
    """
    if not argv or _is_test_command(argv, files):
        return None
    findings = _Findings()
    _add_command(tuple(argv), "", (), files, findings, MAX_TASK_INDIRECTIONS)
    commands, tools = dict.fromkeys(findings.commands), tuple(dict.fromkeys(findings.tools))
    if len(commands) > 1 or not (commands or (tools and not findings.has_others)):
        return None
    command = next(iter(commands), ())
    is_whole = not findings.has_others and not (command and _needs_wrapper(command, tools, files))
    return WrappedTests(command=command, is_whole=is_whole, tools=tools)


def find_search_command(argv: Sequence[str], files: Mapping[str, bytes]) -> tuple[str, ...] | None:
    """Return a pytest command that runs the tests of a command one by one; `None` if there is none.

    A command that also does something else is judged as a whole, and its tests are only hints for the search.

    Args:
        argv: The command as the user wrote it.
        files: The project's files, path -> content.
    """
    wrapped = find_wrapped_tests(argv, files)
    command = tuple(argv) if wrapped is None else wrapped.command
    if not command:
        return None  # only linters run
    return command if is_pytest_command(command) else pytest_equivalent(command)


def _needs_wrapper(
    tests: tuple[str, ...], tools: Sequence[tuple[str, ...]], files: Mapping[str, bytes]
) -> bool:
    """Return whether tests may need what a tool builds, or a tool checks a language other than that of the tests."""
    _, command = split_prefix(tests)
    is_python = is_pytest_command(command) or is_test_command(command)
    language = "python" if is_python else detect_language(command, files)
    found = [tool for argv in tools if (tool := find_tool(argv)) is not None]
    return any(
        tool.builds_programs or (tool.tool.languages and language and language not in tool.tool.languages)
        for tool in found
    )


def _is_test_command(argv: Sequence[str], files: Mapping[str, bytes]) -> bool:
    _, command = split_prefix(argv)
    if is_pytest_command(command) or is_test_command(command):
        return True
    if any(map(_names_package, (command, *map(str.split, find_package_lines(command, files))))):
        return False  # what decides is the script of another package, even if the project's own has the same name
    language = detect_language(command[:2], files) if command and command[0] not in (*SHELLS, *MAKE) else None
    return language is not None and find_runner(command, files, language) is not None


def _names_package(command: Sequence[str]) -> bool:
    """Return whether a package manager runs a script of a package in another folder."""
    options = (*WORKSPACE_OPTIONS, *FOLDER_OPTIONS)
    return bool(command) and command[0] in RUNNERS and any(w.partition("=")[0] in options for w in command)


def _add_command(
    argv: tuple[str, ...],
    folder: str,
    variables: tuple[str, ...],
    files: Mapping[str, bytes],
    findings: _Findings,
    depth: int,
) -> None:
    """Add what one command runs. `folder` and `variables` are those of the shell at that place."""
    prefix, command = split_prefix(argv)
    command = _strip_run_tools(command, files)
    assigned = tuple(word for word in prefix[1:] if ASSIGNMENT.match(word))
    where = dict(pairwise(prefix)).get("-C", "")
    folder = posixpath.normpath(posixpath.join(folder, where)) if where else folder
    variables = (*variables, *assigned)
    if not command or posixpath.basename(command[0]) in HARMLESS or INSTALLING.search(" ".join(command)):
        return
    if _is_test_command(command, _files_in(files, folder)):
        findings.commands.append(add_prefix(folder, variables, command))
        return
    if find_tool(command) is not None:
        findings.tools.append(add_prefix(folder, variables, command))
        return
    lines = list(_inner_lines(command, folder, files)) if depth else []
    if not lines:
        findings.has_others = True
    _add_lines(lines, folder, variables, files, findings, depth - 1)


def _add_lines(
    lines: Sequence[str],
    folder: str,
    variables: tuple[str, ...],
    files: Mapping[str, bytes],
    findings: _Findings,
    depth: int,
) -> None:
    """Add what the lines of a script or target run, one after the other."""
    for line in lines:
        findings.lines += 1
        text = SILENT_PREFIX.sub("", POSITIONAL.sub("", line).strip())
        if IGNORED_FAILURE.search(text):
            ignored = _Findings(lines=findings.lines)
            _add_lines((IGNORED_FAILURE.sub("", text),), folder, variables, files, ignored, depth)
            # Tools change nothing, so that one whose result is ignored can be left out.
            findings.has_others |= ignored.has_others or bool(ignored.commands)
            continue
        if findings.lines > MAX_TASK_LINES or UNREADABLE.search(text):
            findings.has_others = True
            continue
        tools_before, pieces = len(findings.tools), re.split(r"(&&|;)", text)
        for part, separator in zip(pieces[::2], ["", *pieces[1::2]], strict=True):
            # The shell ignores how a command before a `;` ends.
            findings.has_others |= (
                separator == ";" and bool(part.strip()) and len(findings.tools) > tools_before
            )
            try:
                words = tuple(shlex.split(part, comments=True))
            except ValueError:
                findings.has_others = True
                continue
            if words[:1] in (("export",), ("exec",), ("time",)):
                is_export, words = words[0] == "export", words[1:]
                if is_export:
                    variables += tuple(word for word in words if ASSIGNMENT.match(word))
                    continue
            if words[:1] == ("cd",):
                target = words[1] if len(words) == 2 else ""
                folder = posixpath.normpath(posixpath.join(folder, target)).lstrip("/")
                findings.has_others |= not target or folder.startswith("..") or "$" in target
                folder = "" if folder == "." else folder
            elif words and all(map(ASSIGNMENT.match, words)):
                continue
            elif words:
                with_env = ("env", *words) if ASSIGNMENT.match(words[0]) else words
                _add_command(with_env, folder, variables, files, findings, depth)


def _strip_run_tools(command: tuple[str, ...], files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return a command without the tools before it that only choose an environment or measure coverage."""
    while len(command) > 2:
        program = posixpath.basename(command[0])
        is_module = re.fullmatch(r"python[\d.]*", program) and command[1] == "-m"
        if is_module and command[2] == "coverage":
            command = ("coverage", *command[3:])
        elif program == "coverage" and command[1] == "run" and "-m" in command:
            command = ("python", *command[command.index("-m") :])
        elif program in RUN_TOOLS and command[1] == "run" and command[2] not in _tasks_of(program, files):
            command = _skip_options(command[2:])
        else:
            break
    return command


def _skip_options(words: tuple[str, ...]) -> tuple[str, ...]:
    index = 0
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] in RUN_TOOL_VALUE_OPTIONS else 1
    return words[index:]


def _inner_lines(command: tuple[str, ...], folder: str, files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the shell lines that a wrapper runs in the project's folder; none if they are not known."""
    program, words = posixpath.basename(command[0]), command[1:]
    own_files = _files_in(files, folder)
    if program in SHELLS and "-c" in words:
        yield from words[words.index("-c") + 1].splitlines()
    elif program in SHELLS or command[0].endswith(".sh") or command[0].startswith("./"):
        script = next((word for word in (command if program not in SHELLS else words) if word[0] != "-"), "")
        yield from _script_lines(own_files.get(posixpath.normpath(script), b""))
    elif program in RUNNERS:
        yield from find_package_lines(command, own_files)
    elif program in MAKE or program == "just":
        yield from find_task_commands(command, own_files)
    elif program == "tox":
        yield from _tox_lines(words, own_files)
    elif program == "nox":
        yield from _nox_lines(words, own_files)
    elif program in TASK_FILES_BY_PROGRAM or program in RUN_TOOLS:
        names = words[1:] if words[:1] == ("run",) else words
        line = _tasks_of(program, own_files).get(names[0] if names else "")
        yield from [line.replace("{args}", "")] if line else []


def _script_lines(content: bytes) -> Iterator[str]:
    """Yield the lines of a shell script; control structures are not programs and so count as unknown."""
    if len(content) > MAX_SHELL_SCRIPT_BYTES:
        return
    text = content.decode("utf-8", "replace").replace("\\\n", " ")
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line


def _tasks_of(tool: str, files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the tasks that `pyproject.toml` defines for a tool, name -> shell line."""
    for name, keys in TASK_TABLES:
        if name == tool:
            table = _get_table(_read_toml(files.get("pyproject.toml", b"")), *keys)
            lines = {task: _task_line(value) for task, value in table.items()}
            return {task: line for task, line in lines.items() if line}
    return {}


def _task_line(value: object) -> str:
    """Return the shell line of a task; empty for a task of another form."""
    if isinstance(value, dict):
        value = next((value[key] for key in ("cmd", "shell") if key in value), "")
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = " && ".join(value)
    return value if isinstance(value, str) else ""


def _tox_lines(words: Sequence[str], files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the commands of a tox environment, after its variables and its folder."""
    settings = _read_tox(words, files)
    for variable in settings.get("setenv", "").splitlines():
        name, _, value = variable.partition("=")
        if value and "{" not in value:
            yield f"export {name.strip()}={shlex.quote(value.strip())}"
    if folder := settings.get("changedir", ""):
        yield f"cd {TOX_SUBSTITUTION.sub('.', folder)}"

    def substitute(match: re.Match[str]) -> str:
        return {"envpython": "python", "toxinidir": ".", "tox_root": "."}.get(
            match["name"], match["default"] or ""
        )

    for line in settings.get("commands", "").replace("\\\n", " ").splitlines():
        if line.strip():
            yield TOX_SUBSTITUTION.sub(substitute, line.strip())


def _read_tox(words: Sequence[str], files: Mapping[str, bytes]) -> dict[str, str]:
    """Return `commands`, `setenv` and `changedir` of the environment that tox runs, each as in `tox.ini`."""
    names = [value for option, value in pairwise(words) if option in ("-e", "--env")]
    pyproject = _read_toml(files.get("pyproject.toml", b""))
    tool = _get_table(pyproject, "tool", "tox")
    ini_text = str(tool.get("legacy_tox_ini", "")) or files.get("tox.ini", b"").decode("utf-8", "replace")
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(ini_text)
    except configparser.Error:
        return {}
    settings: dict[str, str] = {}
    for section in ("testenv", *(f"testenv:{name}" for name in names)):
        if parser.has_section(section):
            settings |= dict(parser.items(section))
    if "set_env" in settings:
        settings["setenv"] = settings["set_env"]
    native = _read_toml(files.get("tox.toml", b"")) or tool
    base = _get_table(native, "env_run_base") | _get_table(native, "env", *names[:1])
    commands = base.get("commands")
    if not settings.get("commands") and isinstance(commands, list):
        rows = [row for row in commands if isinstance(row, list)]
        lines = [shlex.join(str(word) for word in row if isinstance(word, str)) for row in rows]
        settings["commands"] = "\n".join(lines)
    return settings


def _nox_lines(words: Sequence[str], files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the commands that the sessions of a noxfile run, as far as they are written as constants."""
    wanted = {value for option, value in pairwise(words) if option in ("-s", "--session", "--sessions")}
    try:
        module = ast.parse(files.get("noxfile.py", b""))
    except (SyntaxError, ValueError, RecursionError):
        return
    for function in module.body:
        is_session = isinstance(function, ast.FunctionDef) and any(
            "session" in ast.unparse(decorator) for decorator in function.decorator_list
        )
        if not is_session or (wanted and getattr(function, "name", "") not in wanted):
            continue
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        for call in islice((call for call in calls if _is_session_run(call)), MAX_TASK_LINES):
            constants = [word.value for word in call.args if isinstance(word, ast.Constant)]
            plain = [word for word in call.args if not isinstance(word, ast.Starred)]
            # A word that is computed hides what runs, and counts as an unknown program.
            is_known = len(constants) == len(plain)
            yield shlex.join([*_nox_variables(call), *map(str, constants)]) if is_known else "unknown"


def _is_session_run(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("run", "run_always")


def _nox_variables(call: ast.Call) -> list[str]:
    for keyword in call.keywords:
        if keyword.arg == "env" and isinstance(keyword.value, ast.Dict):
            pairs = zip(keyword.value.keys, keyword.value.values, strict=True)
            return [
                f"{ast.literal_eval(name)}={ast.literal_eval(value)}"
                for name, value in pairs
                if isinstance(name, ast.Constant) and isinstance(value, ast.Constant)
            ]
    return []


def _files_in(files: Mapping[str, bytes], folder: str) -> Mapping[str, bytes]:
    """Return the files below a folder, by their paths in it."""
    if not folder:
        return files
    start = f"{folder}/"
    return {path.removeprefix(start): text for path, text in files.items() if path.startswith(start)}


def _read_toml(content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode("utf-8", "replace"))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _get_table(table: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return the table at the end of some keys; empty if there is none."""
    value: Any = table
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return dict(value) if isinstance(value, Mapping) else {}

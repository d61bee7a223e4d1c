"""Faults of a test's environment: a package, a plugin, a file, a variable or a network that is missing."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from posixpath import basename, isabs, normpath, splitext

from suture.core.records import ExclusionReason, Language
from suture.judge.sandbox_programs import PRIVATE_FOLDER
from suture.judge.triage.service_advice import advise_on_services, find_named_services
from suture.project.languages import LANGUAGES, detect_file_languages
from suture.project.workspace import decode_text, is_protected, is_test_file, render_exclusion
from suture.sandbox import BOX

MODULE_RE = re.compile(r"^(?:ModuleNotFoundError|ImportError): No module named '(?P<name>[\w.]+)'")
ATTRIBUTE_RE = re.compile(
    r"^ImportError: cannot import name '(?P<name>\w+)' from "
    r"(?:partially initialized module )?'(?P<package>[\w.]+)'"
)
FILE_RE = re.compile(r"^FileNotFoundError: .*No such file or directory: '(?P<path>[^']+)'")
VARIABLE_RE = re.compile(r"^KeyError: '(?P<name>[A-Z][A-Z0-9_]+)'")
"""A missing key in capitals, as environment variables are named by convention."""
NO_LOCALE = "Error: unsupported locale setting"
NETWORK_RE = re.compile(
    r"^[\w.]+: .*(?:Temporary failure in name resolution|Name or service not known|Network is unreachable"
    r"|No address associated with hostname)"
    r"|^(?:[\w.]*\.)?(?:ConnectionRefusedError|ConnectError|ConnectionError|URLError|OSError|NewConnectionError"
    r"|OperationalError|InterfaceError|ServerSelectionTimeoutError|AMQPConnectionError)"
    r"\b.*Connection refused"
)
"""An unknown host may come with any exception class, because each library has its own. A refused connection may
be the project's fault, so it only counts with these classes.
"""
UNRESOLVED_RE = re.compile(
    r"Temporary failure in name resolution|Name or service not known|No address associated with hostname"
)
"""An unknown host, which stays unknown whatever the code does."""
SERVICE_RE = re.compile(
    r"(?P<host>localhost|127\.0\.0\.1|::1)\b.{0,40}?(?::|\bport\W{1,3})(?P<port>\d{2,5})\b"
)
"""An address on this machine in the message of a refused connection."""
CONTAINER_RE = re.compile(r"^(?:[\w.]*\.)?(?:DockerException|ExecutableMissingException)\b")
"""What testcontainers raises without a container engine, and pytest-postgresql and pytest-redis without the program."""
SERVICES = {
    "3306": "MySQL", "5432": "PostgreSQL", "5672": "RabbitMQ", "6379": "Redis", "9092": "Kafka",
    "9200": "Elasticsearch", "11211": "Memcached", "27017": "MongoDB",
}  # fmt: skip
"""Port -> the service that usually listens there."""
INTERNAL_ERROR = "INTERNALERROR>"
"""Begins each line of the traceback that pytest prints if it fails outside of all tests."""
ERROR_LINE_RE = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Warning|Exit|Interrupt|Fault)\b")
"""Matches a line of a traceback that names the exception."""
FRAME_RE = re.compile(r'File "(?P<path>[^"]+)", line \d+')
MAX_ERROR_CHARS = 300
"""Characters of another program's message that are repeated. Chosen by judgement; not measured."""
PRINTED_FILE_RE = re.compile(
    r"ENOENT: no such file or directory, \w+ '(?P<node>[^']+)'|open (?P<go>\S+): no such file"
)
"""Messages of Node and Go about a missing file."""
PRINTED_NETWORK_RE = re.compile(
    r"\b(?:EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ENETUNREACH)\b|dial tcp\b.*(?:lookup|refused|unreachable)"
)
"""Messages of Node and Go."""
PRIVATE_PATH = f"{BOX}/{PRIVATE_FOLDER}/"
FIXTURE_RE = re.compile(r"^FixtureLookupError: \('(?P<name>\w+)', <")
MARK_RE = re.compile(r"^(?:Failed: )?'(?P<name>\w+)' not found in `markers` configuration option")
ASYNC_RE = re.compile(r"^Failed: async def functions are not natively supported")
FIXTURE_DEFINITION_RE = re.compile(
    r"fixture\b[^\n]*\n(?:(?!\s*(?:async )?def )[^\n]*\n){0,8}\s*(?:async )?def (?P<name>\w+)"
)
"""A function below a decorator that makes it a fixture.

Up to eight lines may be between them, such as arguments. Chosen by judgement; not measured.
"""
COMPILED_SUFFIXES = (".pyx", ".c", ".cc", ".cpp", ".rs", ".proto")
"""Endings of sources that a build turns into a Python module."""
BUILD_FILES = ("pyproject.toml", "setup.py", "setup.cfg", ".gitignore")
"""Files that may name a module that the build generates."""
SIMILARITY = 0.8
"""Similarity of two names, by `difflib`, from which one may be a misspelling of the other. Chosen by judgement;
not measured."""

INSTALL_PACKAGE = "install it where the test command's python looks"
ENVIRONMENT_TOOLS = {
    "uv.lock": "uv sync",
    "poetry.lock": "poetry install",
    "pdm.lock": "pdm install",
    "Pipfile": "pipenv install --dev",
    "pixi.toml": "pixi install",
    "hatch.toml": "hatch env create",
    "environment.yml": "conda env create",
}
"""File of a tool -> the command that makes the project's environment."""
BUILD_PROJECT = "build the project as its build files describe, for example with `pip install -e .`"


@dataclass(frozen=True, kw_only=True)
class EnvironmentFault:
    """Why a test fails through no fault of the code."""

    explanation: str
    advice: str


NO_NETWORK = EnvironmentFault(
    explanation="it needs a network, and the sandbox has none",
    advice="test against a stand-in that runs in the test",
)


def find_environment_fault(
    exception: str,
    files: Mapping[str, bytes],
    code_texts: Iterable[str] = (),
    excluded: Mapping[str, ExclusionReason] | None = None,
) -> EnvironmentFault | None:
    """Return the environment fault that an exception shows; `None` if the code may be at fault.

    A name that is similar to one of the project or of the standard library counts as a mistake in the code.

    Args:
        exception: Type and message, as in a counterexample.
        code_texts: Texts of the project's code, without its tests.
        excluded: Files that were not copied into the sandbox -> why.
    """
    if match := MODULE_RE.match(exception):
        name = match["name"]
        return _find_unbuilt_module(name, files, excluded or {}) or _find_missing_package(name, files)
    if match := ATTRIBUTE_RE.match(exception):
        return _find_unbuilt_module(f"{match['package']}.{match['name']}", files, excluded or {})
    if match := FILE_RE.match(exception):
        return _find_missing_file(match["path"], files, excluded or {})
    if match := VARIABLE_RE.match(exception):
        name = match["name"]
        lookup = re.compile(rf"environ\[['\"]{name}['\"]\]")
        if any(lookup.search(text) for text in code_texts):
            return EnvironmentFault(
                explanation=f"the environment variable {name} is not set",
                advice=f"set it in the test command: env {name}=...",
            )
    if exception == NO_LOCALE and not any("setlocale" in text for text in code_texts):
        return EnvironmentFault(
            explanation="it sets a locale that is not installed",
            advice="install it, for example with `locale-gen`",
        )
    if NETWORK_RE.match(exception):
        return _find_missing_service(exception, files)
    if CONTAINER_RE.match(exception):
        return EnvironmentFault(
            explanation=f"it cannot start its service inside the sandbox: {exception[:MAX_ERROR_CHARS]}",
            advice=advise_on_services(files),
        )
    return _find_missing_plugin(exception, files)


def _find_missing_service(exception: str, files: Mapping[str, bytes]) -> EnvironmentFault:
    """Return the fault of a network, or of a service if an exception names its address on this machine."""
    match = SERVICE_RE.search(exception)
    if match is None:
        has_services = any(find_named_services(files))
        return replace(NO_NETWORK, advice=advise_on_services(files)) if has_services else NO_NETWORK
    service = SERVICES.get(match["port"], "a service")
    return EnvironmentFault(
        explanation=f"it needs {service} at {match['host']}:{match['port']}, which the sandbox cannot reach:"
        f" {exception[:MAX_ERROR_CHARS]}",
        advice=advise_on_services(files, match["port"]),
    )


def find_internal_error(output: str) -> EnvironmentFault | None:
    """Return the fault of pytest or one of its plugins that stopped before any test ran.

    It is `None` if there was no such error, or if code of the project took part in it.

    Args:
        output: What the test command printed.
    """
    lines = [
        line.partition(INTERNAL_ERROR)[2].strip() for line in output.splitlines() if INTERNAL_ERROR in line
    ]
    paths = [match["path"] for line in lines if (match := FRAME_RE.search(line))]
    is_in_project = any(path.startswith(f"{BOX}/") and not path.startswith(PRIVATE_PATH) for path in paths)
    messages = [line for line in lines if ERROR_LINE_RE.match(line)]
    if not messages or is_in_project:
        return None
    return EnvironmentFault(
        explanation=f"pytest stopped with an internal error: {messages[-1][:MAX_ERROR_CHARS]}",
        advice=f"run the command yourself, and correct pytest's configuration or its plugin ({paths[-1]})"
        if paths
        else "run the command yourself, and correct pytest's configuration",
    )


def is_permanent_fault(exception: str) -> bool:
    """Return whether an environment fault exists whatever the code does.

    The code may have to write a missing file, or to listen on a port. A package that is not installed and a
    host name that does not resolve are missing with any code.
    """
    if MODULE_RE.match(exception) or UNRESOLVED_RE.search(exception):
        return True
    return any(pattern.match(exception) for pattern in (FIXTURE_RE, MARK_RE, ASYNC_RE))


def lacks_requirement(exception: str, files: Mapping[str, bytes]) -> bool:
    """Return whether an exception shows that a package is not installed which the project's build files ask for."""
    match = MODULE_RE.match(exception)
    return match is not None and _is_required(match["name"].partition(".")[0], files)


def _find_missing_package(module: str, files: Mapping[str, bytes]) -> EnvironmentFault | None:
    name = module.partition(".")[0]
    python_paths = [path for path in files if path.endswith(".py")]
    project_names = {part.removesuffix(".py") for path in python_paths for part in path.split("/")}
    # The project has a module with that or a similar name, so the import itself may be wrong.
    if name in project_names or _is_similar(name, project_names):
        return None
    if _is_similar(name, sys.stdlib_module_names) and not _is_required(name, files):
        return None
    tool = next((command for path, command in ENVIRONMENT_TOOLS.items() if path in files), "")
    advice = (
        f"{INSTALL_PACKAGE}: `{tool}` makes the project's environment, and --python names it"
        if tool
        else INSTALL_PACKAGE
    )
    return EnvironmentFault(explanation=f"the package {name!r} is not installed", advice=advice)


def _find_missing_file(
    path: str, files: Mapping[str, bytes], excluded: Mapping[str, ExclusionReason]
) -> EnvironmentFault | None:
    """Return the fault of a missing file, by its path in the error; `None` if the code may be at fault."""
    relative_path = normpath(path.removeprefix(f"{BOX}/"))
    # What is outside of the project in the user's run is not known.
    if isabs(relative_path) or relative_path.startswith("../"):
        return None
    for name, reason in excluded.items():
        # It may be the file, a folder that has nothing else, or a file in a folder that was not copied.
        is_affected = (
            name == relative_path
            or name.startswith(f"{relative_path}/")
            or relative_path.startswith(f"{name}/")
        )
        if reason == "unprintable_name" and is_affected:  # the advice below names other reasons
            return EnvironmentFault(
                explanation=f"'{name}' is not copied into the sandbox: {render_exclusion(reason)}",
                advice="give it another name",
            )
    file_name = basename(relative_path)
    names = {basename(file) for file in files}
    # The code may use a wrong path or a similar name, or it should have made the file itself.
    if file_name in names or _is_similar(file_name, names) or _is_written_by_code(file_name, files):
        return None
    return EnvironmentFault(
        explanation=f"the file {relative_path!r} is not in the project",
        advice="add it; files in .gitignore and very large files are not copied into the sandbox",
    )


def _is_written_by_code(file_name: str, files: Mapping[str, bytes]) -> bool:
    name = re.escape(file_name)
    write = re.compile(rf"{name}['\"]\s*,\s*['\"][wax]|(?:write|append|create)\w*\(.*{name}", re.IGNORECASE)
    return any(
        write.search(decode_text(content))
        for path, content in files.items()
        if detect_file_languages((path,))
    )


def _is_required(package: str, files: Mapping[str, bytes]) -> bool:
    """Return whether the project's own build files ask for a package."""
    name = re.escape(package).replace("_", "[-_.]")
    requirement = re.compile(rf"^[\s\"']*{name}\b", re.MULTILINE | re.IGNORECASE)
    return any(
        requirement.search(decode_text(content))
        for path, content in files.items()
        if basename(path) in ("pyproject.toml", "setup.cfg", "Pipfile", "setup.py")
        or (basename(path).startswith("requirements") and path.endswith(".txt"))
    )


def _is_similar(name: str, names: Collection[str]) -> bool:
    return bool(get_close_matches(name, names, n=1, cutoff=SIMILARITY))


def find_printed_errors(output: str, language: Language) -> list[str]:
    """Return the lines of a test command's output that report an error, in a language other than Python."""
    pattern = LANGUAGES[language].error_pattern
    return [line.strip() for line in output.splitlines() if pattern.search(line)]


def find_fault_in_line(line: str, files: Mapping[str, bytes], language: Language) -> EnvironmentFault | None:
    """Return the environment fault in a line of output; `None` if the code may be at fault.

    A module of the project, and a name similar to a required one, counts as a mistake in the code.

    Args:
        line: A line returned by `find_printed_errors`.
    """
    find_missing = LANGUAGES[language].find_missing
    if find_missing is not None and (missing := find_missing(line, files)):
        explanation, advice = missing
        return EnvironmentFault(explanation=explanation, advice=advice)
    if match := PRINTED_FILE_RE.search(line):
        return _find_missing_file(match["node"] or match["go"], files, {})
    if PRINTED_NETWORK_RE.search(line):
        return _find_missing_service(line, files)
    return None


def _find_unbuilt_module(
    dotted: str, files: Mapping[str, bytes], excluded: Mapping[str, ExclusionReason]
) -> EnvironmentFault | None:
    """Return the fault of a missing module of the project that a build would make; otherwise `None`."""
    stem = dotted.replace(".", "/")
    excluded_path = next((path for path in sorted(excluded) if _is_module(path, stem)), None)
    if excluded_path is not None:
        reason = render_exclusion(excluded[excluded_path])
        return EnvironmentFault(
            explanation=f"{excluded_path!r} is not copied into the sandbox: {reason}",
            advice=f"if it may be read there, add the line `!/{excluded_path}` to .gitignore",
        )
    init_path = f"{stem.rpartition('/')[0]}/__init__.py"
    inits = (path for path in sorted(files) if path == init_path or path.endswith(f"/{init_path}"))
    package_init = next(inits, None)
    if package_init is None:
        return None
    name = basename(stem)
    source = next((path for path in sorted(files) if _is_source(path, name)), None)
    if source is not None:
        return EnvironmentFault(
            explanation=f"{dotted!r} is built from {source!r}, and has not been built", advice=BUILD_PROJECT
        )
    missing_path = f"{package_init.removesuffix('__init__.py')}{name}.py"
    for path in BUILD_FILES:
        if path in files and _names_as_generated(path, files[path], missing_path):
            return EnvironmentFault(
                explanation=f"{dotted!r} is generated by the build, as {path} says, and has not been built",
                advice=BUILD_PROJECT,
            )
    return None


def _is_module(path: str, module_stem: str) -> bool:
    """Return whether a file is a module: source, compiled such as `fast.cpython-311.so`, or a package."""
    stem = path.removesuffix(".py") if path.endswith(".py") else splitext(path)[0].partition(".cpython-")[0]
    stem = stem.removesuffix("/__init__").removesuffix(".abi3")
    return stem == module_stem or stem.endswith(f"/{module_stem}")


def _is_source(path: str, module: str) -> bool:
    """Return whether a module may be built from a file: C, Rust or Cython of its name, or a protocol."""
    stem, suffix = splitext(basename(path))
    is_protocol = suffix == ".proto" and module in (f"{stem}_pb2", f"{stem}_pb2_grpc")
    return is_protocol or (suffix in COMPILED_SUFFIXES and stem in (module, module.lstrip("_")))


def _names_as_generated(build_file: str, content: bytes, path: str) -> bool:
    if build_file == ".gitignore":
        return is_protected(path, decode_text(content).splitlines())
    return re.search(rf"(?<![\w./-]){re.escape(path)}\b", decode_text(content)) is not None


def _find_missing_plugin(exception: str, files: Mapping[str, bytes]) -> EnvironmentFault | None:
    """Return the fault of a missing pytest plugin, unless the project provides its fixture or mark itself."""
    if ASYNC_RE.match(exception):
        return EnvironmentFault(
            explanation="it is an `async def`, and no installed pytest plugin runs it",
            advice="install the plugin that it needs, such as pytest-asyncio, or configure it for this test",
        )
    if match := FIXTURE_RE.match(exception):
        name = match["name"]
        if _is_own_fixture(name, files):
            return None
        return EnvironmentFault(
            explanation=f"the pytest plugin that provides the fixture {name!r} is not installed",
            advice=INSTALL_PACKAGE,
        )
    if match := MARK_RE.match(exception):
        name = match["name"]
        if any(re.search(rf"['\"]{name}\b", text) for text in _iter_code_texts(files)):
            return None
        return EnvironmentFault(
            explanation=f"the pytest plugin that registers the mark {name!r} is not installed",
            advice=f"{INSTALL_PACKAGE}, or add the mark to pytest's `markers`",
        )
    return None


def strip_test_name(exception: str) -> str:
    """Return an exception without the name of the test, so that equal ones are analysed only once."""
    return exception.partition(" for <")[0] if FIXTURE_RE.match(exception) else exception


def _is_own_fixture(name: str, files: Mapping[str, bytes]) -> bool:
    """Return whether the project may provide a fixture of that name or a similar one, so its code may be wrong.

    Tests and `conftest.py` use fixtures of plugins, so only a definition counts there.
    """
    if any(re.search(rf"\b{name}\b", text) for text in _iter_code_texts(files)):
        return True
    texts = [decode_text(content) for path, content in files.items() if path.endswith(".py")]
    fixtures = {match["name"] for text in texts for match in FIXTURE_DEFINITION_RE.finditer(text)}
    assignment = re.compile(rf"^\s*{name}\s*=|\bname\s*=\s*['\"]{name}['\"]", re.MULTILINE)
    return _is_similar(name, fixtures) or any(map(assignment.search, texts))


def _iter_code_texts(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the sources of Python files that are not tests."""
    for path, content in files.items():
        if path.endswith(".py") and not is_test_file(path):
            yield decode_text(content)

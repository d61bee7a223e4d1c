"""Faults of a test's environment: a package, a plugin, a file, a variable or a network that is missing."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from posixpath import basename, isabs, normpath, splitext

from suture.core.records import ExclusionReason, Language
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
NO_LOCALE = "Error: unsupported locale setting"
NETWORK_RE = re.compile(
    r"^[\w.]+: .*(?:Temporary failure in name resolution|Name or service not known|Network is unreachable"
    r"|No address associated with hostname)"
    r"|^(?:[\w.]*\.)?(?:ConnectionRefusedError|ConnectError|ConnectionError|URLError|OSError|NewConnectionError)"
    r"\b.*Connection refused"
)
"""Each library has its own exception classes for an unknown host.

A refused connection may be the project's fault.
"""
UNRESOLVED_RE = re.compile(
    r"Temporary failure in name resolution|Name or service not known|No address associated with hostname"
)
PRINTED_MISSING_FILE_RE = re.compile(
    r"ENOENT: no such file or directory, \w+ '(?P<node>[^']+)'|open (?P<go>\S+): no such file"
)
PRINTED_NETWORK_RE = re.compile(
    r"\b(?:EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ENETUNREACH)\b|dial tcp\b.*(?:lookup|refused|unreachable)"
)
"""Messages of Node and Go."""
FIXTURE_RE = re.compile(r"^FixtureLookupError: \('(?P<name>\w+)', <")
MARK_RE = re.compile(r"^(?:Failed: )?'(?P<name>\w+)' not found in `markers` configuration option")
ASYNC_RE = re.compile(r"^Failed: async def functions are not natively supported")
FIXTURE_DEFINITION_RE = re.compile(
    r"fixture\b[^\n]*\n(?:(?!\s*(?:async )?def )[^\n]*\n){0,8}\s*(?:async )?def (?P<name>\w+)"
)
"""A function below a decorator that makes it a fixture."""

INSTALL_PACKAGE = "install it where the test command's python looks"


@dataclass(frozen=True, kw_only=True)
class EnvironmentFault:
    """Why a test fails through no fault of the code.

    Attributes:
        explanation: What is missing, in words.
        advice: What the user can do.
    """

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
    if match := MODULE_RE.match(exception) or ATTRIBUTE_RE.match(exception):
        return find_unbuilt_module(_module_name(match), files, excluded or {}) or (
            _missing_module(match["name"], files) if match.re is MODULE_RE else None
        )
    if match := FILE_RE.match(exception):
        return find_missing_file(match["path"], files, excluded or {})
    if match := VARIABLE_RE.match(exception):
        name = match["name"]
        asked = re.compile(rf"environ\[['\"]{name}['\"]\]")
        if any(asked.search(text) for text in code_texts):
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
        return NO_NETWORK
    return find_missing_plugin(exception, files)


def is_permanent_fault(exception: str) -> bool:
    """Return whether an environment fault exists whatever the code does.

    The code may have to write a missing file, or to listen on a port. A package that is not installed and a
    host name that does not resolve are missing with any code.
    """
    return bool(MODULE_RE.match(exception) or UNRESOLVED_RE.search(exception)) or concerns_plugin(exception)


def _module_name(match: re.Match[str]) -> str:
    package = match.groupdict().get("package")
    return f"{package}.{match['name']}" if package else match["name"]


def _missing_module(name: str, files: Mapping[str, bytes]) -> EnvironmentFault | None:
    top = name.partition(".")[0]
    own = _own_modules(files)
    # The project has a module of that name or a similar one, so the import itself may be wrong.
    if (
        top in own
        or _is_similar(top, own)
        or (_is_similar(top, sys.stdlib_module_names) and not _is_required(top, files))
    ):
        return None
    return EnvironmentFault(explanation=f"the package {top!r} is not installed", advice=INSTALL_PACKAGE)


def find_missing_file(
    path: str, files: Mapping[str, bytes], excluded: Mapping[str, ExclusionReason]
) -> EnvironmentFault | None:
    """Return the fault of a missing file; `None` if the code may be at fault.

    Args:
        path: The path as the error names it.
        excluded: Files in the project's folder that were not copied -> why.
    """
    plain = normpath(path.removeprefix(f"{BOX}/"))
    if isabs(plain) or plain.startswith("../"):
        return None
    # It may be the file, a folder that has nothing else, or a file in a folder that was not copied.
    odd = [name for name, why in excluded.items() if why == "unprintable_name"]
    for name in odd:
        if name == plain or name.startswith(f"{plain}/") or plain.startswith(f"{name}/"):
            return EnvironmentFault(
                explanation=f"'{name}' is not copied into the sandbox: {render_exclusion(excluded[name])}",
                advice="give it another name",
            )
    names = {basename(file) for file in files}
    # The code may use a wrong path or a similar name, or it should have made the file itself.
    if basename(plain) in names or _is_similar(basename(plain), names) or _is_made(plain, files):
        return None
    return EnvironmentFault(
        explanation=f"the file {plain!r} is not in the project",
        advice="add it; files in .gitignore and very large files are not copied into the sandbox",
    )


def _is_made(path: str, files: Mapping[str, bytes]) -> bool:
    name = re.escape(basename(path))
    making = re.compile(rf"{name}['\"]\s*,\s*['\"][wax]|(?:write|append|create)\w*\(.*{name}", re.IGNORECASE)
    return any(
        making.search(decode_text(content))
        for path, content in files.items()
        if detect_file_languages((path,))
    )


def _own_modules(files: Mapping[str, bytes]) -> frozenset[str]:
    python = [name for name in files if name.endswith(".py")]
    return frozenset(part.removesuffix(".py") for name in python for part in name.split("/"))


def _is_required(name: str, files: Mapping[str, bytes]) -> bool:
    """Whether the project's own build_files ask for a package."""
    build_files = [content for path, content in files.items() if _is_build_file(path)]
    named = re.compile(rf"^[\s\"']*{re.escape(name).replace('_', '[-_.]')}\b", re.MULTILINE | re.IGNORECASE)
    return any(named.search(decode_text(content)) for content in build_files)


def _is_build_file(path: str) -> bool:
    name = basename(path)
    return name in ("pyproject.toml", "setup.cfg", "Pipfile", "setup.py") or (
        name.startswith("requirements") and name.endswith(".txt")
    )


def _is_similar(name: str, known: Collection[str]) -> bool:
    return bool(get_close_matches(name, known, n=1, cutoff=0.8))


def find_printed_errors(output: str, language: Language) -> list[str]:
    """The lines of a test command's output that tell of an error: each must be one of the surroundings.

    Args:
        language: The project's language, other than Python.
    """
    error = LANGUAGES[language].error_pattern
    return [line.strip() for line in output.splitlines() if error.search(line)]


def find_fault_in_line(line: str, files: Mapping[str, bytes], language: Language) -> EnvironmentFault | None:
    """Return the environment fault in a line of output; `None` if the code may be at fault.

    A module of the project, and a name similar to a required one, counts as a mistake in the code.

    Args:
        line: A line returned by `find_printed_errors`.
    """
    find = LANGUAGES[language].find_missing
    if find is not None and (missing := find(line, files)):
        return EnvironmentFault(explanation=missing[0], advice=missing[1])
    if match := PRINTED_MISSING_FILE_RE.search(line):
        return find_missing_file(match["node"] or match["go"], files, {})
    if PRINTED_NETWORK_RE.search(line):
        return NO_NETWORK
    return None


COMPILED_SUFFIXES = (".pyx", ".c", ".cc", ".cpp", ".rs", ".proto")
BUILD_FILES = ("pyproject.toml", "setup.py", "setup.cfg", ".gitignore")
BUILD_PROJECT = "build the project as its build files describe, for example with `pip install -e .`"


def find_unbuilt_module(
    dotted: str, files: Mapping[str, bytes], excluded: Mapping[str, ExclusionReason]
) -> EnvironmentFault | None:
    """Return the fault of a missing module of the project that a build would make; otherwise `None`.

    Args:
        dotted: The module's name, as the import has it.
        excluded: Files that were not copied -> why.
    """
    place = dotted.replace(".", "/")
    here = next((path for path in sorted(excluded) if _is_module(path, place)), None)
    if here is not None:
        return EnvironmentFault(
            explanation=f"{here!r} is not copied into the sandbox: {render_exclusion(excluded[here])}",
            advice=f"if it may be read there, add the line `!/{here}` to .gitignore",
        )
    parent = f"{place.rpartition('/')[0]}/__init__.py"
    package = next((path for path in sorted(files) if path == parent or path.endswith(f"/{parent}")), None)
    if package is None:
        return None
    missing = package.removesuffix("__init__.py") + basename(place) + ".py"
    source = next((path for path in sorted(files) if _is_source(path, basename(place))), None)
    if source is not None:
        return EnvironmentFault(
            explanation=f"{dotted!r} is built from {source!r}, and has not been built", advice=BUILD_PROJECT
        )
    build_file = next(
        (path for path in BUILD_FILES if path in files and _names_as_generated(path, files[path], missing)),
        None,
    )
    if build_file is not None:
        return EnvironmentFault(
            explanation=f"{dotted!r} is generated by the build, as {build_file} says, and has not been built",
            advice=BUILD_PROJECT,
        )
    return None


def _is_module(path: str, place: str) -> bool:
    stem = path.removesuffix(".py") if path.endswith(".py") else splitext(path)[0].partition(".cpython-")[0]
    stem = stem.removesuffix("/__init__").removesuffix(".abi3")
    return stem == place or stem.endswith(f"/{place}")


def _is_source(path: str, name: str) -> bool:
    stem, ending = splitext(basename(path))
    proto = ending == ".proto" and name in (f"{stem}_pb2", f"{stem}_pb2_grpc")
    return proto or (ending in COMPILED_SUFFIXES and stem in (name, name.lstrip("_")))


def _names_as_generated(build_file: str, content: bytes, missing: str) -> bool:
    """Return whether a build file of the project names a file as generated."""
    if build_file == ".gitignore":
        return is_protected(missing, decode_text(content).splitlines())
    return re.search(rf"(?<![\w./-]){re.escape(missing)}\b", decode_text(content)) is not None


def find_missing_plugin(exception: str, files: Mapping[str, bytes]) -> EnvironmentFault | None:
    """Return the fault of a missing pytest plugin; `None` for any other failure.

    Args:
        files: The project's files, path -> content. The project itself may provide the fixture or the mark.
    """
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
        if any(re.search(rf"['\"]{name}\b", text) for text in _code_texts(files)):
            return None
        return EnvironmentFault(
            explanation=f"the pytest plugin that registers the mark {name!r} is not installed",
            advice=f"{INSTALL_PACKAGE}, or add the mark to pytest's `markers`",
        )
    return None


def concerns_plugin(exception: str) -> bool:
    """Return whether an exception is about something that a pytest plugin provides."""
    return any(pattern.match(exception) for pattern in (FIXTURE_RE, MARK_RE, ASYNC_RE))


def strip_test_name(exception: str) -> str:
    """Return an exception without the name of the test, so that equal ones are analysed only once."""
    return exception.partition(" for <")[0] if FIXTURE_RE.match(exception) else exception


def _is_own_fixture(name: str, files: Mapping[str, bytes]) -> bool:
    """Return whether the project provides a fixture of that name or a similar one: then its code may be
    wrong.

    Tests and `conftest.py` use fixtures of plugins, so only a definition counts there.
    """
    if any(re.search(rf"\b{name}\b", text) for text in _code_texts(files)):
        return True
    texts = [decode_text(content) for path, content in files.items() if path.endswith(".py")]
    made = {match["name"] for text in texts for match in FIXTURE_DEFINITION_RE.finditer(text)}
    given = re.compile(rf"^\s*{name}\s*=|\bname\s*=\s*['\"]{name}['\"]", re.MULTILINE)
    return bool(get_close_matches(name, made, n=1, cutoff=0.8)) or any(map(given.search, texts))


def _code_texts(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the texts of Python files that are not tests."""
    yield from (
        decode_text(c) for path, c in files.items() if path.endswith(".py") and not is_test_file(path)
    )

"""Faults of a test's surroundings: a package, a file, a variable or a network that is not there."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from posixpath import basename, isabs, normpath, splitext

from suture.core.records import ExclusionReason, Language
from suture.judge.triage.missing_plugins import is_of_plugin, missing_plugin
from suture.project.languages import LANGUAGES, detect_file_languages
from suture.project.workspace import is_protected, render_exclusion, text_of
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
"""Each library has classes of its own for a name that nobody knows; what is refused may be the project's."""
UNRESOLVED_RE = re.compile(
    r"Temporary failure in name resolution|Name or service not known|No address associated with hostname"
)
PRINTED_FILE_RE = re.compile(
    r"ENOENT: no such file or directory, \w+ '(?P<node>[^']+)'|open (?P<go>\S+): no such file"
)
PRINTED_NETWORK_RE = re.compile(
    r"\b(?:EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ENETUNREACH)\b|dial tcp\b.*(?:lookup|refused|unreachable)"
)
"""As Node and Go print them."""


def fault_of_surroundings(
    exception: str,
    files: Mapping[str, bytes],
    written: Iterable[str] = (),
    left_out: Mapping[str, ExclusionReason] | None = None,
) -> tuple[str, str] | None:
    """Why a test fails through no fault of the code, and what to do about it; `None` for any other failure.

    A name that is nearly one of the project's own, or of the standard library, counts as a slip in the code.

    Args:
        exception: Type and message, as in a counterexample.
        files: The project's files, path -> content.
        written: Texts of the project's code, where an environment variable would be asked for.
        left_out: Files of modules that were not copied into the sandbox -> why.
    """
    if match := MODULE_RE.match(exception) or ATTRIBUTE_RE.match(exception):
        return module_not_built(_dotted(match), files, left_out or {}) or (
            _missing_module(match["name"], files) if match.re is MODULE_RE else None
        )
    if match := FILE_RE.match(exception):
        return missing_file(match["path"], files, left_out or {})
    if match := VARIABLE_RE.match(exception):
        name = match["name"]
        asked = re.compile(rf"environ\[['\"]{name}['\"]\]")
        if any(asked.search(text) for text in written):
            return (
                f"the environment variable {name} is not set",
                f"give it to the test command: env {name}=...",
            )
    if exception == NO_LOCALE and not any("setlocale" in text for text in written):
        return "it sets a locale that is not installed", "install it, such as by `locale-gen`"
    if NETWORK_RE.match(exception):
        return "it needs a network, and the sandbox has none", "test against a stand-in that runs in the test"
    return missing_plugin(exception, files)


def stays(exception: str) -> bool:
    """Whether a fault of the surroundings is none that the code could have brought about before it was seen.

    A file may be the code's to write and a port its to listen at; what is not installed, and a name that
    nobody resolves, is missing whatever the code does.

    Args:
        exception: As for `fault_of_surroundings`.
    """
    return bool(MODULE_RE.match(exception) or UNRESOLVED_RE.search(exception)) or is_of_plugin(exception)


def _dotted(match: re.Match[str]) -> str:
    package = match.groupdict().get("package")
    return f"{package}.{match['name']}" if package else match["name"]


def _missing_module(name: str, files: Mapping[str, bytes]) -> tuple[str, str] | None:
    top = name.partition(".")[0]
    own = _own_modules(files)
    # The project's own module of that name, or of nearly that name: the import is what is wrong.
    if (
        top in own
        or _nearly(top, own)
        or (_nearly(top, sys.stdlib_module_names) and not _required(top, files))
    ):
        return None
    return f"the package {top!r} is not installed", "install it where the test command's python looks"


def missing_file(
    path: str, files: Mapping[str, bytes], left_out: Mapping[str, ExclusionReason]
) -> tuple[str, str] | None:
    """Why a file is missing through no fault of the code, and what to do; `None` where it may be the code's.

    Args:
        path: As the error names it.
        files: The project's files, path -> content.
        left_out: Files that are in the project's folder and were not copied -> why.
    """
    plain = normpath(path.removeprefix(f"{BOX}/"))
    if isabs(plain) or plain.startswith("../"):
        return None
    # The file, a folder that holds nothing else, or a file in a folder that was not copied.
    odd = [name for name, why in left_out.items() if why == "unprintable_name"]
    for name in odd:
        if name == plain or name.startswith(f"{plain}/") or plain.startswith(f"{name}/"):
            return (
                f"'{name}' is not copied into the sandbox: {render_exclusion('unprintable_name')}",
                "give it another name",
            )
    names = {basename(file) for file in files}
    # The code asks for a file that lies elsewhere in the project, or for nearly its name; or it should have
    # made the file itself, in which case something names it.
    if basename(plain) in names or _nearly(basename(plain), names) or _is_made(plain, files):
        return None
    return (
        f"the file {plain!r} is not in the project",
        "add it; what .gitignore names, and what is too large, is not copied into the sandbox",
    )


def _is_made(path: str, files: Mapping[str, bytes]) -> bool:
    name = re.escape(basename(path))
    making = re.compile(rf"{name}['\"]\s*,\s*['\"][wax]|(?:write|append|create)\w*\(.*{name}", re.IGNORECASE)
    return any(
        making.search(text_of(content)) for path, content in files.items() if detect_file_languages((path,))
    )


def _own_modules(files: Mapping[str, bytes]) -> frozenset[str]:
    python = [name for name in files if name.endswith(".py")]
    return frozenset(part.removesuffix(".py") for name in python for part in name.split("/"))


def _required(name: str, files: Mapping[str, bytes]) -> bool:
    """Whether the project's own papers ask for a package."""
    papers = [content for path, content in files.items() if _is_paper(path)]
    named = re.compile(rf"^[\s\"']*{re.escape(name).replace('_', '[-_.]')}\b", re.MULTILINE | re.IGNORECASE)
    return any(named.search(text_of(content)) for content in papers)


def _is_paper(path: str) -> bool:
    name = basename(path)
    return name in ("pyproject.toml", "setup.cfg", "Pipfile", "setup.py") or (
        name.startswith("requirements") and name.endswith(".txt")
    )


def _nearly(name: str, known: Collection[str]) -> bool:
    return bool(get_close_matches(name, known, n=1, cutoff=0.8))


def find_printed_errors(output: str, language: Language) -> list[str]:
    """The lines of a test command's output that tell of an error: each must be one of the surroundings.

    Args:
        output: What the test command printed.
        language: What the project is written in; not Python.
    """
    error = LANGUAGES[language].error_pattern
    return [line.strip() for line in output.splitlines() if error.search(line)]


def fault_in_line(line: str, files: Mapping[str, bytes], language: Language) -> tuple[str, str] | None:
    """Why a line of output tells of no fault of the code, and what to do; `None` where it may be the code's.

    A module of the project's own, and a name that is nearly one that it requires, is a slip in the code.

    Args:
        line: As `find_printed_errors` answers it.
        files: The project's files, path -> content.
        language: What the project is written in.
    """
    find = LANGUAGES[language].find_missing
    if find is not None and (absent := find(line, files)):
        return absent
    if match := PRINTED_FILE_RE.search(line):
        return missing_file(match["node"] or match["go"], files, {})
    if PRINTED_NETWORK_RE.search(line):
        return "it needs a network, and the sandbox has none", "test against a stand-in that runs in the test"
    return None


COMPILED_FROM = (".pyx", ".c", ".cc", ".cpp", ".rs", ".proto")
PAPERS = ("pyproject.toml", "setup.py", "setup.cfg", ".gitignore")
INSTALL = "build the project as its papers say, such as `pip install -e .`"


def module_not_built(
    dotted: str, files: Mapping[str, bytes], left_out: Mapping[str, ExclusionReason]
) -> tuple[str, str] | None:
    """Why a module of the project's own is missing through no fault of the code, and what to do about it.

    Args:
        dotted: Its name, as an import tells it.
        files: The project, as it was copied.
        left_out: Files of modules that were not copied -> why.

    Returns:
        `None` where the module is none that a build would write.
    """
    place = dotted.replace(".", "/")
    here = next((path for path in sorted(left_out) if _is_module(path, place)), None)
    if here is not None:
        why = f"{here!r} is not copied into the sandbox: {left_out[here]}"
        return why, f"if it may be read there, add the line `!/{here}` to .gitignore"
    parent = f"{place.rpartition('/')[0]}/__init__.py"
    package = next((path for path in sorted(files) if path == parent or path.endswith(f"/{parent}")), None)
    if package is None:
        return None
    missing = package.removesuffix("__init__.py") + basename(place) + ".py"
    source = next((path for path in sorted(files) if _is_source(path, basename(place))), None)
    if source is not None:
        return f"{dotted!r} is made of {source!r} when the project is built, and is not there", INSTALL
    paper = next(
        (path for path in PAPERS if path in files and _names_as_made(path, files[path], missing)), None
    )
    if paper is not None:
        return f"{dotted!r} is written when the project is built, as {paper} says, and is not there", INSTALL
    return None


def _is_module(path: str, place: str) -> bool:
    stem = path.removesuffix(".py") if path.endswith(".py") else splitext(path)[0].partition(".cpython-")[0]
    stem = stem.removesuffix("/__init__").removesuffix(".abi3")
    return stem == place or stem.endswith(f"/{place}")


def _is_source(path: str, name: str) -> bool:
    stem, ending = splitext(basename(path))
    proto = ending == ".proto" and name in (f"{stem}_pb2", f"{stem}_pb2_grpc")
    return proto or (ending in COMPILED_FROM and stem in (name, name.lstrip("_")))


def _names_as_made(paper: str, content: bytes, missing: str) -> bool:
    """Whether a paper of the project names a file as one that is made."""
    if paper == ".gitignore":
        return is_protected(missing, text_of(content).splitlines())
    return re.search(rf"(?<![\w./-]){re.escape(missing)}\b", text_of(content)) is not None

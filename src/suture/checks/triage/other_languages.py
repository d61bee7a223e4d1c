"""Faults of a test's surroundings as node and Go print them: a package, file or network that is not there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches

from suture.checks.triage.surroundings import missing_file
from suture.languages import LANGUAGES
from suture.records import Language
from suture.workspace import text_of

NODE_PACKAGE = re.compile(r"Cannot find (?:module|package) '(?P<name>[^']+)'")
GO_PACKAGE = re.compile(
    r"(?:no required module provides package|cannot find module providing package|missing go\.sum entry for"
    r" module providing package|cannot find package) \"?(?P<name>[\w./@-]+[\w/-])"
)
FILE = re.compile(r"ENOENT: no such file or directory, \w+ '(?P<node>[^']+)'|open (?P<go>\S+): no such file")
NETWORK = re.compile(
    r"\b(?:EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ENETUNREACH)\b|dial tcp\b.*(?:lookup|refused|unreachable)"
)


def printed_errors(output: str, language: Language) -> list[str]:
    """The lines of a test command's output that tell of an error: each must be one of the surroundings.

    Args:
        output: What the test command printed.
        language: What the project is written in; not Python.
    """
    error = LANGUAGES[language].error_line
    return [line.strip() for line in output.splitlines() if error.search(line)]


def fault_in_line(line: str, files: Mapping[str, bytes]) -> tuple[str, str] | None:
    """Why a line of output tells of no fault of the code, and what to do; `None` where it may be the code's.

    A module of the project's own, and a name that is nearly one that it requires, is a slip in the code.

    Args:
        line: As `printed_errors` answers it.
        files: The project's files, path -> content.
    """
    if match := NODE_PACKAGE.search(line):
        return _missing_node_package(match["name"], files)
    if match := GO_PACKAGE.search(line):
        return _missing_go_module(match["name"], files)
    if match := FILE.search(line):
        return missing_file(match["node"] or match["go"], files)
    if NETWORK.search(line):
        return "it needs a network, and the sandbox has none", "test against a stand-in that runs in the test"
    return None


def _missing_node_package(name: str, files: Mapping[str, bytes]) -> tuple[str, str] | None:
    if name.startswith((".", "/", "#", "node:", "file:")):
        return None
    package = "/".join(name.split("/")[: 2 if name.startswith("@") else 1])
    required = _requirements(files)
    if package not in required and get_close_matches(package, required, n=1, cutoff=0.8):
        return None
    return f"the package {package!r} is not installed", "run `npm install` in the project"


def _requirements(files: Mapping[str, bytes]) -> frozenset[str]:
    try:
        package = json.loads(files.get("package.json", b"{}"))
    except (ValueError, RecursionError):
        return frozenset()
    groups = [value for key, value in package.items() if key.lower().endswith("dependencies")]
    return frozenset(str(name) for group in groups if isinstance(group, dict) for name in group)


def _missing_go_module(name: str, files: Mapping[str, bytes]) -> tuple[str, str] | None:
    own = re.search(r"^module\s+(\S+)", text_of(files.get("go.mod", b"")), re.MULTILINE)
    if own and (name == own[1] or name.startswith(f"{own[1]}/")):
        return None
    return f"the module of {name!r} is not there", "run `go mod download` in the project, or vendor it"

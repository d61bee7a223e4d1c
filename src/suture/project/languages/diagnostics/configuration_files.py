"""Find the files that the configuration of linters and type checkers names: bases, plugins, rules and local hooks.

Whoever may write them decides what the tools report.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from suture.project.tuning import MAX_SCANNED_FILE_CHARS

HOOKS = ".pre-commit-config.yaml"
OPTION = re.compile(
    r"(?P<name>-c|-p|--config|--config-file|--rcfile|--project|--rulesdir|--ignore-path|--append-config)(?:=(?P<value>.+))?"
)
"""Matches an option of a tool whose value is a file or folder of its configuration."""
REFERENCES = (
    # `extends` of tsconfig and ESLint, `extend` of ruff, `plugins` of mypy, Prettier and TypeScript.
    re.compile(
        r"\b(?:extends?|(?:load-|js)?plugins?)[\"']?\s*[:=]\s*(\[[^\]]*\]|[^\n]*(?:\n\s*-\s[^\n]*)*)", re.I
    ),
    re.compile(r"^plugins\s*=([^\n\[]*(?:\n[ \t]+[^\n]*)*)", re.MULTILINE),
    re.compile(r"^\[flake8:local-plugins\]([^\[]*)", re.MULTILINE),
    re.compile(r"\b(?:from|import|require|resolve)\b\s*\(?\s*([\"'][.][^\"'\n]*[\"'])"),
)
"""Match what names other files in a configuration."""
ENDINGS = (
    "", ".json", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".toml", "/index.js", "/index.ts", "/index.mjs",
    "/index.cjs", "/__init__.py", "/tsconfig.json", "/package.json",
)  # fmt: skip


def find_configuration_files(
    tools: Iterable[Sequence[str]], configuration: Iterable[str], files: Mapping[str, bytes]
) -> tuple[str, ...]:
    """Return the project's files that the options or the configuration of some tools name, and those name in turn.

    Args:
        tools: The argument vectors of the tools.
        configuration: The files of the project that configure tools by their name.
        files: The project's files, path -> content.
    """
    waiting = [path for argv in tools for path in _find_option_files(argv, files)]
    found = dict.fromkeys(waiting)
    waiting += configuration
    while waiting:
        path = waiting.pop()
        named = [name for name in _find_references(path, files) if name not in found]
        found |= dict.fromkeys(named)
        waiting += named
    return tuple(found)


def find_hook_commands(files: Mapping[str, bytes]) -> Iterator[tuple[str, ...]]:
    """Yield the argument vectors of the local hooks of pre-commit."""
    import yaml

    try:
        settings = yaml.safe_load(files.get(HOOKS, b""))
    except (yaml.YAMLError, ValueError, RecursionError):
        return
    for repository in _get_list(settings, "repos"):
        for hook in _get_list(repository, "hooks"):
            entry = hook.get("entry") if isinstance(hook, dict) else None
            if isinstance(entry, str):
                try:
                    yield (*shlex.split(entry), *map(str, _get_list(hook, "args")))
                except ValueError:
                    yield (*entry.split(),)


def _get_list(table: Any, key: str) -> list[Any]:
    value = table.get(key) if isinstance(table, dict) else None
    return value if isinstance(value, list) else []


def _find_option_files(argv: Sequence[str], files: Mapping[str, bytes]) -> Iterator[str]:
    folder = dict(pairwise(argv)).get("-C", "") if argv[:1] == ("env",) else ""
    for word, following in pairwise((*argv, "")):
        if option := OPTION.fullmatch(word):
            path = posixpath.normpath(posixpath.join(folder, option["value"] or following))
            yield from (name for name in files if name == path or name.startswith(f"{path}/"))


def _find_references(path: str, files: Mapping[str, bytes]) -> Iterator[str]:
    text = files[path][:MAX_SCANNED_FILE_CHARS].decode("utf-8", "replace")
    values = [match[1] for pattern in REFERENCES for match in pattern.finditer(text)]
    for word in dict.fromkeys(word for value in values for word in re.split(r"[\s\"',\[\]{}()=;]+", value)):
        # A plugin may be a module, and `module:name` something in it.
        module = word.partition(":")[0]
        names = dict.fromkeys((word, module, module.replace(".", "/"))) if word.strip("./") else ()
        for folder in dict.fromkeys((posixpath.dirname(path), "", "src")):
            for name in (posixpath.normpath(posixpath.join(folder, name)) for name in names):
                yield from (name + ending for ending in ENDINGS if name + ending in files)

"""Files that the configuration of test runners, or the tests themselves, have loaded beside the tests."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from suture.project.languages.language import expand_word_globs

MOST_BYTES, MOST_NAMES = 1 << 18, 200
"""Of a file that is read for names, and of what it names."""
OF_PYTEST = (
    *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "tox.ini"),
    *("setup.cfg",),
)
IS_A_PLUGIN = re.compile(rb"\bpytest11\b")
METADATA = ("pyproject.toml", "setup.cfg", "setup.py")
ADDOPTS = re.compile(r"^\s*addopts\s*=(.*(?:\n(?!\s*[\w.-]+\s*=|\[[\w.-]|\[\[).*)*)", re.MULTILINE)
ASKED = re.compile(r"(?<![\w-])-p[\s\"',=]*([A-Za-z_][\w.]*)(?![\w.:])")
PLUGINS = re.compile(r"^pytest_plugins\s*(?::[^=\n]*)?\+?=\s*([\[(][^\])]*|[^\n]*)", re.MULTILINE)
QUOTED = re.compile(r"[\"']([A-Za-z_][\w.]*)[\"']")
MAY_NAME_PLUGINS = re.compile(r"(?:.*/)?(?:conftest|test_[^/]*|[^/]*_test|tests)\.py")

OF_NODE = re.compile(
    r"(?:.*/)?(?:package\.json|(?:jest|vitest|vite|ava|playwright|wdio|cypress)\.config\.\w+|vitest\.workspace\.\w+"
    r"|karma\.conf\.\w+|\.mocharc(?:\.\w+)?|\.taprc|\.nycrc(?:\.\w+)?|jasmine\.json)"
)
OF_RUNNERS = ("jest", "vitest", "mocha", "ava", "tap", "nyc", "c8", "jasmine")
LOADS = re.compile(
    r"(?<![\w.-])[\"']?(setupFiles(?:AfterEnv)?|setupFile|globalSetup|globalTeardown|testEnvironment|testRunner"
    r"|runner|reporters?|transform|resolver|snapshotSerializers|testResultsProcessor|testSequencer|preset|environment"
    r"|require|import|loader|file|spec|helpers|ui|before|after)[\"']?\s*[:=]\s*"
    r"(\[[^\]]*\]|\{[^}]*\}|(?:\n\s*-[^\n]*)+|[^,\n]*)"
)
WORD = re.compile(r"[^\s,\[\]{}()\"'`]+")


def find_pytest_plugins(files: Mapping[str, bytes]) -> Iterator[str]:
    """Globs of plugins in the project that its configuration of pytest names, or a test does.

    Of a project that is a plugin itself there are none: they are the code.

    Args:
        files: The project's files, path -> content.
    """
    if any(IS_A_PLUGIN.search(files.get(path, b"")) for path in METADATA):
        return
    names = [
        name
        for path in OF_PYTEST
        for options in ADDOPTS.findall(_text(files, path))
        for name in ASKED.findall(options)
    ]
    named = (path for path in files if MAY_NAME_PLUGINS.fullmatch(path) and b"pytest_plugins" in files[path])
    names += [
        name
        for path in named
        for said in PLUGINS.findall(_text(files, path))
        for name in QUOTED.findall(said)
    ]
    for name in islice(dict.fromkeys(names), MOST_NAMES):
        place = name.replace(".", "/")
        yield from (f"**/{place}.py", f"**/{place}/__init__.py")


def find_node_runner_files(files: Mapping[str, bytes]) -> Iterator[str]:
    """Globs of what the configuration of Node's test runners has them load.

    Args:
        files: The project's files, path -> content.
    """
    for path in islice(filter(OF_NODE.fullmatch, files), MOST_NAMES):
        folder, text = posixpath.dirname(path), _text(files, path)
        if path.endswith("package.json"):
            text = _of_runners(text)
        words = ((key, word) for key, said in LOADS.findall(text) for word in WORD.findall(said))
        for key, word in islice(dict.fromkeys(words), MOST_NAMES):
            plain = posixpath.normpath(posixpath.join(folder, word.removeprefix("<rootDir>/")))
            if key == "spec":
                yield from expand_word_globs(plain)
            elif ("/" in word or "." in word) and plain[0] not in "./":  # else it is a package
                yield from (f"/{plain}.*", f"/{plain}/index.*", *((f"/{plain}",) if plain in files else ()))


def _of_runners(text: str) -> str:
    """What `package.json` says of runners; the rest of it names the code."""
    try:
        package: Any = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    known = package if isinstance(package, dict) else {}
    return "\n".join(json.dumps(known[name], indent=0) for name in OF_RUNNERS if name in known)


def _text(files: Mapping[str, bytes], path: str) -> str:
    content = files.get(path, b"")
    return content.decode("utf-8", "replace") if len(content) <= MOST_BYTES else ""

"""Find the files that a test runner loads besides the tests, such as plugins and setup files.

The configuration of the runner names them, or a test does. They decide the outcome, so they are protected.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from suture.project.languages.language import expand_word_globs
from suture.project.tuning import MAX_CONFIGURED_NAMES, MAX_RUNNER_CONFIG_BYTES

PYTEST_CONFIG_FILES = (
    "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg",
)  # fmt: skip
PLUGIN_ENTRY_POINT = re.compile(rb"\bpytest11\b")
"""Matches the group of entry points by which a package offers itself to pytest as a plugin."""
PACKAGE_METADATA_FILES = ("pyproject.toml", "setup.cfg", "setup.py")
SETTING_VALUE = r"\s*=(.*(?:\n(?!\s*[\w.-]+\s*=|\[[\w.-]|\[\[).*)*)"
"""Matches the value of a setting in pytest's configuration, up to the next setting or section."""
ADDOPTS = re.compile(r"^\s*addopts" + SETTING_VALUE, re.MULTILINE)
PYTHONPATH = re.compile(r"^\s*pythonpath" + SETTING_VALUE, re.MULTILINE)
PLUGIN_OPTION = re.compile(r"(?<![\w-])-p[\s\"',=]*([A-Za-z_][\w.]*)(?![\w.:])")
"""Matches the option of pytest that loads a plugin; `-p no:NAME` does not match."""
PLUGIN_LIST = re.compile(r"^pytest_plugins\s*(?::[^=\n]*)?\+?=\s*([\[(][^\])]*|[^\n]*)", re.MULTILINE)
"""Matches the assignment by which a file names the plugins that it needs."""
QUOTED = re.compile(r"[\"']([A-Za-z_][\w.]*)[\"']")
# Files in which pytest reads `pytest_plugins`: among all files that may set it, those whose names pytest knows.
MAY_LIST_PLUGINS = re.compile(r"(?:.*/)?(?:conftest|test_[^/]*|[^/]*_test|tests)\.py")

NODE_CONFIG_FILE = re.compile(
    r"(?:.*/)?(?:package\.json|(?:jest|vitest|vite|ava|playwright|wdio|cypress)\.config\.\w+|vitest\.workspace\.\w+"
    r"|karma\.conf\.\w+|\.mocharc(?:\.\w+)?|\.taprc|\.nycrc(?:\.\w+)?|jasmine\.json)"
)
"""Matches the paths of files that configure a test runner."""
RUNNER_KEYS = ("jest", "vitest", "mocha", "ava", "tap", "nyc", "c8", "jasmine")
"""Keys of a `package.json` under which a test runner is configured."""
# A setting whose value names files that a runner loads. The groups are its key and its value.
LOADING_KEY = re.compile(
    r"(?<![\w.-])[\"']?(setupFiles(?:AfterEnv)?|setupFile|globalSetup|globalTeardown|testEnvironment|testRunner"
    r"|runner|reporters?|transform|resolver|snapshotSerializers|testResultsProcessor|testSequencer|preset|environment"
    r"|require|import|loader|file|spec|helpers|ui|before|after)[\"']?\s*[:=]\s*"
    r"(\[[^\]]*\]|\{[^}]*\}|(?:\n\s*-[^\n]*)+|[^,\n]*)"
)
RESOLUTION_FILE = re.compile(NODE_CONFIG_FILE.pattern + r"|(?:.*/)?[jt]sconfig(?:\.[\w-]+)?\.json")
"""Matches the paths of files that say where modules are looked for."""
MODULE_FOLDERS = re.compile(
    r"(?<![\w.-])[\"']?(?:moduleDirectories|modulePaths|baseUrl|modules)[\"']?\s*[:=]\s*(\[[^\]]*\]|[^,\n]*)"
    r"|\bNODE_PATH=([^\s\"']+)"
)
"""Matches a setting whose value names folders in which packages are looked for."""
WORD = re.compile(r"[^\s,\[\]{}()\"'`]+")


def find_pytest_plugins(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield globs of plugins in the project that its pytest configuration or a test names.

    A project that is itself a plugin has none: there, the plugins are the code.
    """
    if any(PLUGIN_ENTRY_POINT.search(files.get(path, b"")) for path in PACKAGE_METADATA_FILES):
        return
    names: list[str] = []
    for path in PYTEST_CONFIG_FILES:
        for options in ADDOPTS.findall(_text(files, path)):
            names += PLUGIN_OPTION.findall(options)
    for path in filter(MAY_LIST_PLUGINS.fullmatch, files):
        for plugins in PLUGIN_LIST.findall(_text(files, path)) if b"pytest_plugins" in files[path] else ():
            names += QUOTED.findall(plugins)
    for name in islice(dict.fromkeys(names), MAX_CONFIGURED_NAMES):
        module_path = name.replace(".", "/")
        yield from (f"**/{module_path}.py", f"**/{module_path}/__init__.py")


def find_pytest_search_path(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the folders that pytest's configuration adds to `sys.path`, relative to the project."""
    for path in PYTEST_CONFIG_FILES:
        for folders in PYTHONPATH.findall(_text(files, path)):
            for line in folders.splitlines():
                yield from WORD.findall(line.partition("#")[0])


def find_node_module_folders(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the folders of the project in which the configuration of Node's tools looks for packages."""
    for path in islice(filter(RESOLUTION_FILE.fullmatch, files), MAX_CONFIGURED_NAMES):
        folder = posixpath.dirname(path)
        for match in MODULE_FOLDERS.finditer(_text(files, path)):
            for word in WORD.findall(match[1] or match[2]):
                yield posixpath.normpath(posixpath.join(folder, word.replace("<rootDir>", ".")))


def find_node_runner_files(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield globs of the files that the configuration of Node's test runners loads."""
    for path in islice(filter(NODE_CONFIG_FILE.fullmatch, files), MAX_CONFIGURED_NAMES):
        folder, text = posixpath.dirname(path), _text(files, path)
        if path.endswith("package.json"):
            text = _runner_settings(text)
        words = ((key, word) for key, value in LOADING_KEY.findall(text) for word in WORD.findall(value))
        for key, word in islice(dict.fromkeys(words), MAX_CONFIGURED_NAMES):
            # `<rootDir>` is Jest's name for the folder of its configuration.
            path_in_project = posixpath.normpath(posixpath.join(folder, word.removeprefix("<rootDir>/")))
            if key == "spec":  # the tests themselves, often as a glob
                yield from expand_word_globs(path_in_project)
            # A name without a slash or a dot, or a path outside of the project, is an installed package.
            elif ("/" in word or "." in word) and path_in_project[0] not in "./":
                yield from (f"/{path_in_project}.*", f"/{path_in_project}/index.*")
                if path_in_project in files:
                    yield f"/{path_in_project}"


def _runner_settings(text: str) -> str:
    """Return the part of a `package.json` that configures test runners. The rest names the code."""
    try:
        package: Any = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    settings = package if isinstance(package, dict) else {}
    return "\n".join(json.dumps(settings[name], indent=0) for name in RUNNER_KEYS if name in settings)


def _text(files: Mapping[str, bytes], path: str) -> str:
    content = files.get(path, b"")
    return content.decode("utf-8", "replace") if len(content) <= MAX_RUNNER_CONFIG_BYTES else ""

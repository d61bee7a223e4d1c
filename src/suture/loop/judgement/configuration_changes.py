"""Tell changes of configuration that decide which tests run, or what their failure stops, from all others."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Mapping

from suture.project.workspace import decode_text, is_protected

CONFIGURATION_GLOBS = (
    "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", ".coveragerc", "noxfile.py", "suture.toml",
    "package.json", "jest.config.*", "vitest.config.*", "vite.config.*", ".mocharc*", "[Mm]akefile", "GNUmakefile",
    "justfile", "Taskfile.y*ml", "*Dockerfile*test*", "*test*Dockerfile*", ".github/workflows/", ".github/actions/",
    ".gitlab-ci.yml", ".circleci/", "azure-pipelines.yml", "bitbucket-pipelines.yml", ".travis.yml", ".drone.yml",
    "appveyor.yml", ".appveyor.yml", ".buildkite/", ".woodpecker*", "Jenkinsfile", ".pre-commit-config.yaml", ".husky/",
    "lefthook.yml", "codecov.yml", ".codecov.yml", "CODEOWNERS",
)  # fmt: skip
"""Globs of files that say which tests run, and what their failure stops."""
SCRIPT_SUFFIXES = (".sh", ".bash", ".zsh", ".fish", ".ps1", ".bat", ".cmd")
TEST_SECTIONS = re.compile(
    r"tool[.:](?:pytest|coverage|tox|nox|hatch\.envs|poe|pdm\.scripts|taskipy|cov|mutmut|suture)\b"
    r"|pytest\b|coverage\b|tox\b|testenv|run\b|report\b|paths\b"
)
"""Matches the name of a section of a TOML or INI file that says how tests run."""
TEST_KEYS = ("scripts", "jest", "mocha", "ava", "tap", "c8", "nyc", "vitest", "type", "imports", "exports")
"""Keys of `package.json` that say how tests run."""
SECTION = re.compile(r"\[+([^\[\]]+)\]+\s*(?:#.*)?$")
PINNED_VERSION = re.compile(
    r"(?:-\s*)?(?:uses|rev|image|tag|name|[\w-]*(?:python|node|go|version)[\w-]*):(?!.*(?:\|\||;))"
    r"|-\s*['\"]?(?:pypy-?|graalpy-?)?[\d.]+[\w.-]*['\"]?$|#"
)
"""Matches a line of a workflow that only pins a version or names a step, or that is a comment."""
PYTHON_VERSION = re.compile(r"\bpy(?:py)?-?\d[\d.]*\b,?\s*")
"""Matches the name of an environment of tox that is a version of Python, such as `py313`."""
SECTION_FILES = ("pyproject.toml", "setup.cfg", "tox.ini", ".coveragerc")


def find_configuration_changes(files: Mapping[str, bytes], changed: Iterable[str]) -> list[str]:
    """Return the changed files that configure how tests run, and the changed scripts that these files name.

    Args:
        files: Path -> content of the project before the change.
    """
    configuring = [
        decode_text(content) for path, content in files.items() if is_protected(path, CONFIGURATION_GLOBS)
    ]
    return [
        path
        for path in changed
        if is_protected(path, CONFIGURATION_GLOBS)
        or (path.endswith(SCRIPT_SUFFIXES) and any(posixpath.basename(path) in text for text in configuring))
    ]


def alters_test_run(path: str, before: str, after: str) -> bool:
    """Return whether a change of a configuration file can change which tests run, or what their failure stops.

    Args:
        path: One of `find_configuration_changes`.
        before: The file's text; empty for a new file.
        after: The file's text after the change; empty for a removed file.
    """
    name = posixpath.basename(path)
    if name in SECTION_FILES:
        return _read_sections(before) != _read_sections(after)
    if name == "package.json":
        return _read_keys(before) != _read_keys(after)
    if name.endswith((".yml", ".yaml")):
        return _drop_pinned_versions(before) != _drop_pinned_versions(after)
    return True


def _read_sections(text: str) -> dict[str, list[str]]:
    """Return the lines of the sections that say how tests run, without comments, layout and versions of Python."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for row in text.splitlines():
        line = PYTHON_VERSION.sub("", row.strip())
        header = SECTION.match(line) if row[:1] == "[" else None
        if header is not None:
            # The lines of any other section go into a list that nobody reads.
            is_read = TEST_SECTIONS.match(header[1].strip().replace('"', "")) is not None
            lines = sections.setdefault(header[1], []) if is_read else []
        elif line and not line.startswith("#"):
            lines.append(line)
    return sections


def _read_keys(text: str) -> object:
    try:
        values = json.loads(text or "{}")
    except ValueError:
        return text
    if not isinstance(values, Mapping):
        return text
    return {key: values[key] for key in TEST_KEYS if key in values}


def _drop_pinned_versions(text: str) -> list[str]:
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and PINNED_VERSION.match(line) is None]

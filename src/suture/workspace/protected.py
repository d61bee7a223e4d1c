"""Which files no candidate may write: tests, what configures them, what could replace the test runner."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from suture.workspace.globs import Globs, parse_globs

TEST_FILES: tuple[str, ...] = (
    *("tests/", "test/", "test_*.py", "*_test.py", "conftest.py"),
    *("__tests__/", "__mocks__/", "*.test.js", "*.test.[cm]js", "*.test.jsx"),
    *("*.spec.js", "*.spec.[cm]js", "*.spec.jsx"),
    *("*.test.ts", "*.test.tsx", "*.spec.ts", "*.spec.tsx", "*_test.go", "testdata/"),
)
"""Globs of test files, written as in a `.gitignore`."""

DEFAULT_PROTECTED: tuple[str, ...] = (
    *TEST_FILES,
    # What configures a test run, or decides what a test command does.
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "setup.cfg",
    "pyproject.toml",
    "noxfile.py",
    "Makefile",
    "package.json",
    "jest.config.*",
    "vitest.config.*",
    "vite.config.*",
    "babel.config.*",
    ".babelrc*",
    ".mocharc*",
    "go.mod",
    "go.work",
    "suture.toml",
    ".env*",
    # What Python runs before anything else.
    "sitecustomize.py",
    "usercustomize.py",
    "sitecustomize/",
    "usercustomize/",
    "*.pth",
    # What pytest loads as a plugin because it looks installed.
    "*.dist-info/",
    "*.egg-info/",
    # Modules in the tree come before the real ones of the same name.
    "/pytest.py",
    "/pytest/",
    "/_pytest/",
    "/pluggy/",
    "/unittest.py",
    "/unittest/",
    "node_modules/",
    # Continuous integration, locked dependencies, the repository itself.
    ".github/",
    ".gitlab-ci.yml",
    ".circleci/",
    ".ci/",
    "Jenkinsfile",
    "azure-pipelines.yml",
    "*.lock",
    "requirements*.txt",
    "constraints*.txt",
    "go.sum",
    "go.work.sum",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    ".git",
    ".gitignore",
    ".gitattributes",
    ".gitmodules",
)
"""What is protected unless the user says otherwise; globs as in a `.gitignore`."""


def is_protected(path: str, globs: Iterable[str] = DEFAULT_PROTECTED) -> bool:
    """Whether a candidate must not write this path; one that leaves the tree is always protected.

    Args:
        path: Relative to the project root; `a/../tests/x.py` counts as `tests/x.py`.
        globs: Patterns as in a `.gitignore`.
    """
    plain = posixpath.normpath(path)
    if posixpath.isabs(plain) or plain in (".", "..") or plain.startswith("../") or "\0" in plain:
        return True
    return replace(_parsed(tuple(globs))).covers(plain)  # with all of its steps, for each path


def is_test_file(path: str) -> bool:
    """Whether a path relative to the project root is a test, or serves tests only."""
    return is_protected(path, TEST_FILES)


@lru_cache(maxsize=32)
def _parsed(globs: tuple[str, ...]) -> Globs:
    return parse_globs(globs, "the globs of protected files")

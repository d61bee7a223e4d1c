"""Which files no candidate may write: tests, what configures them, what could replace the test runner."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from suture.project.languages import BUILT_IN_LANGUAGES, LANGUAGES, TASK_FILES
from suture.project.workspace.globs import Globs, parse_globs

TEST_FILES: tuple[str, ...] = (
    *("tests/", "test/"),
    *(glob for facts in BUILT_IN_LANGUAGES.values() for glob in facts.test_files),
)
"""Globs of test files in our languages, written as in a `.gitignore`."""

DEFAULT_PROTECTED: tuple[str, ...] = (
    *TEST_FILES,
    # What configures a test run, or decides what a test command does.
    *dict.fromkeys(glob for facts in BUILT_IN_LANGUAGES.values() for glob in facts.config_globs),
    *(*TASK_FILES, "suture.toml", ".env*"),
    # Continuous integration, locked dependencies, the repository itself.
    *(".github/", ".gitlab-ci.yml", ".circleci/", ".ci/", "Jenkinsfile", "azure-pipelines.yml", "*.lock"),
    *(".git", ".gitignore", ".gitattributes", ".gitmodules"),
)
"""What is protected unless the user says otherwise; globs as in a `.gitignore`."""


def default_protected() -> tuple[str, ...]:
    """`DEFAULT_PROTECTED`, and what languages of installed packages protect."""
    brought = (facts for name, facts in LANGUAGES.items() if name not in BUILT_IN_LANGUAGES)
    return (*DEFAULT_PROTECTED, *(glob for one in brought for glob in (*one.test_files, *one.config_globs)))


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
    return is_protected(path, (*TEST_FILES, *(glob for one in LANGUAGES.values() for glob in one.test_files)))


@lru_cache(maxsize=32)
def _parsed(globs: tuple[str, ...]) -> Globs:
    return parse_globs(globs, "the globs of protected files")

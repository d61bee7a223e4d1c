"""Decide which files no candidate may write.

These are the tests, their configuration, and files that would replace the test runner.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from functools import lru_cache

from suture.project.languages import BUILT_IN_LANGUAGES, LANGUAGES, TASK_FILES
from suture.project.tuning import MAX_MATCH_STEPS
from suture.project.workspace.globs import Globs, parse_globs
from suture.project.workspace.text_files import leaves_project

TEST_FILES: tuple[str, ...] = (
    "tests/",
    "test/",
    *(glob for facts in BUILT_IN_LANGUAGES.values() for glob in facts.test_files),
)
"""Globs of the test files of the built-in languages, as in a `.gitignore`."""

DEFAULT_PROTECTED: tuple[str, ...] = (
    *TEST_FILES,
    # Files that configure a test run, or decide what a test command does, such as a Makefile.
    *dict.fromkeys(glob for facts in BUILT_IN_LANGUAGES.values() for glob in facts.config_globs),
    *TASK_FILES,
    "suture.toml",
    ".env*",
    # Continuous integration, locked dependencies, the repository itself.
    ".github/", ".gitlab-ci.yml", ".circleci/", ".ci/", "Jenkinsfile", "azure-pipelines.yml", "*.lock",
    ".git", ".gitignore", ".gitattributes", ".gitmodules",
)  # fmt: skip
"""Globs of the files that are protected by default, as in a `.gitignore`; of languages, only the built-in ones.
`default_protected` adds the languages from plugins, which are not loaded when this module is imported."""


def default_protected() -> tuple[str, ...]:
    """Return `DEFAULT_PROTECTED` and the globs of languages from plugins, which are loaded for it."""
    globs = list(DEFAULT_PROTECTED)
    for name, facts in LANGUAGES.items():
        if name not in BUILT_IN_LANGUAGES:
            globs += (*facts.test_files, *facts.config_globs)
    return tuple(globs)


def is_protected(path: str, globs: Iterable[str] = DEFAULT_PROTECTED) -> bool:
    """Return whether a candidate must not write a path. Paths outside of the project are always protected.

    Args:
        path: Path relative to the project root; `a/../tests/x.py` counts as `tests/x.py`.
        globs: Patterns as in a `.gitignore`. By default, files of languages from plugins are not protected.
    """
    normal_path = posixpath.normpath(path)
    if leaves_project(normal_path):
        return True
    patterns = tuple(globs)
    ends = [index for index, char in enumerate(normal_path) if char == "/"]
    return any(_is_named(normal_path[:end], patterns, is_folder=True) for end in ends) or _is_named(
        normal_path, patterns, is_folder=False
    )


def is_test_file(path: str) -> bool:
    """Return whether a path relative to the project root is a test, or serves only tests."""
    globs = list(TEST_FILES)
    for facts in LANGUAGES.values():
        globs += facts.test_files
    return is_protected(path, globs)


@lru_cache(maxsize=1 << 17)  # each step of a run asks about all files
def _is_named(path: str, globs: tuple[str, ...], *, is_folder: bool) -> bool:
    """Return whether the patterns include a file or folder itself, whatever is around it."""
    parsed = _parse_cached(globs)
    parsed.steps_left = MAX_MATCH_STEPS  # for each path
    return parsed.verdict(path, is_folder=is_folder) is True


@lru_cache(maxsize=32)
def _parse_cached(globs: tuple[str, ...]) -> Globs:
    return parse_globs(globs, "the globs of protected files")

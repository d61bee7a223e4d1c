"""Decide which files no candidate may write.

These are the tests, their configuration, and files that would replace the test runner.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from functools import lru_cache

from suture.project.languages import BUILT_IN_LANGUAGES, LANGUAGES, TASK_FILES
from suture.project.tuning import MAX_CACHED_PATHS, MAX_MATCH_STEPS
from suture.project.workspace.globs import parse_globs
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
    return _parse_cached(tuple(globs)).covers(path)


def is_test_file(path: str) -> bool:
    """Return whether a path relative to the project root is a test, or serves only tests."""
    return is_protected(path, _list_test_globs(tuple(LANGUAGES)))


@lru_cache(maxsize=4)
def _list_test_globs(languages: tuple[str, ...]) -> tuple[str, ...]:
    return (*TEST_FILES, *(glob for name in languages for glob in LANGUAGES[name].test_files))


class _Protection:
    """The parsed globs of protected files, and what they say about the paths so far: each step of a run asks again."""

    def __init__(self, globs: tuple[str, ...]) -> None:
        self._globs = parse_globs(globs, "the globs of protected files")
        self._files: dict[str, bool] = {}
        self._folders: dict[str, bool] = {"": False}

    def covers(self, path: str) -> bool:
        """Return whether the patterns include a file or a folder around it, or the path leaves the project."""
        known = self._files.get(path)
        if known is None:
            normal_path = posixpath.normpath(path)
            known = (
                leaves_project(normal_path)
                or self._covers_folder(posixpath.dirname(normal_path))
                or self._names(normal_path, is_folder=False)
            )
            if len(self._files) < MAX_CACHED_PATHS:
                self._files[path] = known
        return known

    def _covers_folder(self, folder: str) -> bool:
        unknown: list[str] = []
        while folder not in self._folders:  # no recursion: a candidate may name thousands of folders
            unknown.append(folder)
            folder = posixpath.dirname(folder)
        is_covered = self._folders[folder]
        for inner in reversed(unknown):
            is_covered = is_covered or self._names(inner, is_folder=True)
            if len(self._folders) < MAX_CACHED_PATHS:
                self._folders[inner] = is_covered
        return is_covered

    def _names(self, path: str, *, is_folder: bool) -> bool:
        """Return whether the patterns include a file or folder itself, regardless of the folders around it."""
        self._globs.steps_left = MAX_MATCH_STEPS  # for each path
        return self._globs.verdict(path, is_folder=is_folder) is True


@lru_cache(maxsize=32)
def _parse_cached(globs: tuple[str, ...]) -> _Protection:
    return _Protection(globs)

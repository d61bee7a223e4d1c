"""Patterns of a `.gitignore`: the same answers as git, in bounded time."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suture.errors import UsageError
from suture.project.workspace.globs import parse_globs

PATTERNS = st.lists(
    st.text(alphabet="ab*?/!\\[]^-. #", min_size=1, max_size=9)
    | st.sampled_from(
        (
            "**/a",
            "a/**",
            "a/**/b",
            "**",
            "/**",
            "a**b",
            "[[:alpha:]]",
            "[!a]b",
            "a\\ ",
            "/a",
            "a/",
            "b/a/",
            "*/b",
            "?",
            "[a-b]",
            "[]a]",
            "[a-]",
            "[b-a]",
            "[--/]",
            "[[:alpha:]-z]",
            "**/",
            "/*",
            "!/a/b",
            "\\!a",
            "\\#",
            "a//b",
            "***",
            "**/**/b",
        )
    ),
    max_size=4,
)
PATHS = st.lists(st.text(alphabet="ab-. !#]^", min_size=1, max_size=3), min_size=1, max_size=4).filter(
    lambda parts: not {".", "..", ".git"} & set(parts)
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    root = tmp_path_factory.mktemp("repo")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def is_ignored_by_git(root: Path, patterns: list[str], path: str) -> bool:
    (root / ".gitignore").write_text("\n".join(patterns))
    process = subprocess.run(
        ["git", "-C", str(root), "check-ignore", "-q", "--no-index", "--stdin", "-z"],
        input=path.encode() + b"\0",
        env={"PATH": os.environ["PATH"], "HOME": str(root)},
        capture_output=True,
        check=False,
    )
    assert process.returncode in (0, 1), process.stderr
    return process.returncode == 0


@pytest.mark.heavy
@settings(
    max_examples=600,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(patterns=PATTERNS, parts=PATHS)
def test_patterns_cover_the_same_paths_as_in_git(
    repository: Path, patterns: list[str], parts: list[str]
) -> None:
    path = "/".join(parts)
    assert parse_globs(patterns).covers(path) == is_ignored_by_git(repository, patterns, path), (
        patterns,
        path,
    )


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("*a" * 15 + "b", "a" * 200),
        ("*" * 4000 + "b", "a" * 200),
        ("?*" * 60 + "b", "a" * 200),
        ("**/a/" * 60 + "b", "a/" * 60 + "c"),
        ("[!b]*" * 40 + "b", "a" * 200),
        ("a*" * 1000, "a" * 255),
    ],
)
def test_many_stars_take_no_exponential_time(pattern: str, name: str) -> None:
    assert not parse_globs([pattern]).covers(name)


def test_matching_that_takes_too_long_is_refused() -> None:
    globs = parse_globs(["*a*b*c*d"] * 20_000, source="these")
    globs.steps_left //= 100
    with pytest.raises(UsageError, match="these: matching takes too long"):
        _ = [globs.covers(f"pkg/abab{number}d") for number in range(5000)]


def test_a_pattern_that_is_longer_than_any_path_is_dropped() -> None:
    assert not parse_globs(["*" * 5000]).patterns


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("ab*ba", "aba", False),
        ("a*b*c", "acb", False),
        ("a*b*c", "abc", True),
        ("**", "x", True),
        ("x/**", "x", False),
        ("a*[-_.]secret*.json", "a-b_secret.json", True),
        ("x[+-9]y/z", "x/y/z", False),
        ("[z-a]", "z", True),
        ("[!z-a]", "z", False),
        ("[z-a]", "a", False),
        ("[[:alpha:]-z]", "-", True),
        ("[--/]", ".x", False),
        ("x[--/]y", "x.y", True),
    ],
)
def test_texts_between_wildcards_match_in_their_order(pattern: str, name: str, fits: bool) -> None:
    assert parse_globs([pattern]).covers(name) is fits

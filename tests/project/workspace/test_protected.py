"""Files that a candidate must not change, because they could decide a verdict."""

from __future__ import annotations

import pytest

from suture.project.workspace import is_protected, is_test_file


@pytest.mark.parametrize(
    "path",
    [
        "tests/test_x.py",
        "tests/data/input.txt",
        "pkg/tests/x.py",
        "test_x.py",
        "pkg/x_test.py",
        "conftest.py",
        "pkg/conftest.py",
        "./tests/x.py",
        "pkg/../tests/x.py",
        "tests//x.py",
    ],
)
def test_python_tests_are_protected(path: str) -> None:
    assert is_test_file(path)
    assert is_protected(path)


@pytest.mark.parametrize(
    "path",
    [
        "pytest.ini",
        "tox.ini",
        "setup.cfg",
        "pyproject.toml",
        "sitecustomize.py",
        "pkg/usercustomize.py",
        "evil.pth",
        "pytest.py",
        "_pytest/__init__.py",
        "unittest/case.py",
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        "poetry.lock",
        "requirements-dev.txt",
        ".git/hooks/pre-commit",
        ".env.local",
        "suture.toml",
    ],
)
def test_files_that_could_change_a_verdict_are_protected(path: str) -> None:
    assert is_protected(path)
    assert not is_test_file(path)


@pytest.mark.parametrize(
    "path",
    [
        "src/it/java/shop/Server.java",
        "core/src/integration-test/java/shop/Server.java",
        "core/src/intTest/resources/data.csv",
        "src/testFixtures/java/shop/Sample.java",
    ],
)
def test_support_of_java_tests_is_protected(path: str) -> None:
    assert is_test_file(path)


def test_build_logic_of_gradle_is_protected() -> None:
    assert is_protected("buildSrc/src/main/java/Checks.java")
    assert not is_protected("src/main/java/shop/it/Server.java")


@pytest.mark.parametrize(
    "path",
    ["test.js", "lib/parse-test.mjs", "test-parse.js", "spec/fixtures/schema.js", "x_test.ts", "a.test.mts"],
)
def test_javascript_tests_are_protected(path: str) -> None:
    assert is_test_file(path)
    assert is_protected(path)


@pytest.mark.parametrize(
    "path",
    [
        "vendor/example.org/check/is.go",
        "tools/vendor/example.org/check/is.go",
        "tools/vendor/modules.txt",
        "jest.setup.ts",
        ".pnp.cjs",
        "ava.config.mjs",
        "web/jsconfig.json",
        "lib/shop.egg-link",
    ],
)
def test_assertion_packages_and_setup_files_are_protected(path: str) -> None:
    assert is_protected(path)


@pytest.mark.parametrize("path", ["src/test.js", "src/latest.js", "src/spec/parse.js", "vendor/models.py"])
def test_code_with_a_similar_path_is_not_protected(path: str) -> None:
    assert not is_protected(path)


@pytest.mark.parametrize("path", ["../x.py", "a/../../x.py", "/etc/passwd", "..", ".", "", "a\0b"])
def test_paths_outside_the_project_are_always_protected(path: str) -> None:
    assert is_protected(path, ())


def test_a_path_may_have_more_folders_than_python_calls_nest() -> None:
    assert not is_protected("a/" * 1500 + "x.py")
    assert is_protected("a/" * 1500 + "tests/" + "a/" * 1500 + "x.py")


@pytest.mark.parametrize(
    "path", ["solution.py", "pkg/testing.py", "pkg/contest.py", "latest/x.py", "pkg/pytest.py", "attest.py"]
)
def test_code_is_not_protected(path: str) -> None:
    assert not is_protected(path)
    assert not is_test_file(path)


def test_globs_follow_the_rules_of_a_gitignore() -> None:
    globs = ("docs/", "/top.py", "*.sql", "!keep.sql")
    assert is_protected("a/docs/x.md", globs)
    assert is_protected("top.py", globs)
    assert not is_protected("a/top.py", globs)
    assert is_protected("a/b.sql", globs)
    assert not is_protected("keep.sql", globs)

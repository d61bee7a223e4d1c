"""The test command inside a wrapper, and the call of `env` before a command."""

from __future__ import annotations

import pytest

from suture.project.languages import find_search_command, find_wrapped_tests, is_pytest_command
from suture.project.languages.command_prefix import add_prefix, find_working_folder, split_prefix

MAKEFILE = b"PY = python\nunit: prepare\n\t@echo testing\n\tTZ=UTC $(PY) -m pytest -q spec\nprepare:\n\tmkdir -p out\n"
TOX = b"[testenv]\nsetenv =\n    RATE = 3\ncommands =\n    pytest {posargs:spec}\n[testenv:lint]\ncommands = ruff\n"
TOX_TOML = b'[env_run_base]\ncommands = [["python", "-m", "pytest", "spec"]]\n'
NOX = b"""
import nox

@nox.session(python=["3.11"])
def unit(session):
    session.install(".")
    session.run("pytest", "-q", "spec", *session.posargs, env={"RATE": "3"})

@nox.session
def style(session):
    session.run("ruff", "check")
"""
SCRIPT = b'#!/bin/sh\nset -e\n# unit tests\nexport RATE=3\ncd backend\nexec python -m pytest "$@"\n'
PYPROJECT = b'[tool.poe.tasks]\nunit = "pytest spec"\n[tool.pdm.scripts]\nunit = {cmd = ["pytest", "spec"]}\n'
PACKAGE = b'{"scripts": {"test": "jest"}}'
CART = b'{"name": "@shop/cart", "scripts": {"test": "node --test", "unit": "TZ=UTC jest"}}'
WORKSPACE = {
    "package.json": b'{"workspaces": ["libs/*"], "scripts": {"test": "jest", "cart": "npm test -w libs/cart"}}',
    "libs/cart/package.json": CART,
    "libs/cart/cart.js": b"",
    "libs/list/package.json": b'{"name": "list"}',
}


@pytest.mark.parametrize(
    ("wrapper", "files", "command"),
    [
        ("make unit", {"Makefile": MAKEFILE}, "env TZ=UTC python -m pytest -q spec"),
        ("just unit", {"justfile": b"unit:\n    pytest spec\n"}, "pytest spec"),
        ("tox", {"tox.ini": TOX}, "env RATE=3 pytest spec"),
        ("tox -e py311", {"tox.ini": TOX}, "env RATE=3 pytest spec"),
        ("tox", {"tox.toml": TOX_TOML}, "python -m pytest spec"),
        ("nox -s unit", {"noxfile.py": NOX}, "env RATE=3 pytest -q spec"),
        ("sh unit.sh", {"unit.sh": SCRIPT}, "env -C backend RATE=3 python -m pytest"),
        ("./unit.sh", {"unit.sh": SCRIPT}, "env -C backend RATE=3 python -m pytest"),
        ("poe unit", {"pyproject.toml": PYPROJECT}, "pytest spec"),
        ("poetry run pytest -x", {}, "pytest -x"),
        ("uv run --python 3.12 pytest -x", {}, "pytest -x"),
        ("coverage run --branch -m pytest spec", {}, "python -m pytest spec"),
        ("poetry run coverage run -m pytest", {}, "python -m pytest"),
        ("make t", {"Makefile": b"t:\n\tpython -m unittest\n"}, "python -m unittest"),
        ("make t", {"Makefile": b"t:\n\tcd web && python manage.py test\n"}, "env -C web python manage.py test"),
        ("make t", {"Makefile": b"t:\n\tgo test ./...\n", "a.go": b""}, "go test ./..."),
        ("make t", {"Makefile": b"t:\n\tnpm test\n", "package.json": PACKAGE, "a.js": b""}, "npm test"),
        ("make t", {"Makefile": b"t:\n\t./run.sh\n", "run.sh": b"pytest spec\n"}, "pytest spec"),
        ("npm test -w @shop/cart", WORKSPACE, "env -C libs/cart node --test"),
        ("npm run unit --silent --workspace=libs/cart", WORKSPACE, "env -C libs/cart TZ=UTC jest"),
        ("npm --prefix libs/cart t", WORKSPACE, "env -C libs/cart node --test"),
        ("pnpm --filter @shop/cart test", WORKSPACE, "env -C libs/cart node --test"),
        ("pnpm -F ./libs/cart run unit", WORKSPACE, "env -C libs/cart TZ=UTC jest"),
        ("yarn workspace @shop/cart test", WORKSPACE, "env -C libs/cart node --test"),
        ("npm run cart", WORKSPACE, "env -C libs/cart node --test"),
    ],
)  # fmt: skip
def test_the_test_command_inside_a_wrapper_is_found(
    wrapper: str, files: dict[str, bytes], command: str
) -> None:
    wrapped = find_wrapped_tests(wrapper.split(), files)
    assert wrapped is not None
    assert " ".join(wrapped.command) == command
    assert wrapped.is_whole


def test_a_wrapper_that_also_runs_another_program_decides_as_a_whole() -> None:
    files = {"Makefile": b"all: style\n\tpytest spec\nstyle:\n\t./check-links\n"}
    wrapped = find_wrapped_tests(("make", "all"), files)
    assert wrapped is not None
    assert not wrapped.is_whole
    assert find_search_command(("make", "all"), files) == ("pytest", "spec")


def test_linters_that_a_wrapper_also_runs_are_told_apart_from_its_tests() -> None:
    files = {"Makefile": b"all: style\n\tpytest spec\nstyle:\n\truff check\n"}
    wrapped = find_wrapped_tests(("make", "all"), files)
    assert wrapped is not None
    assert (wrapped.command, wrapped.tools, wrapped.is_whole) == (
        ("pytest", "spec"),
        (("ruff", "check"),),
        True,
    )


@pytest.mark.parametrize(
    ("line", "is_whole", "tools"),
    [
        ("go build -o bin/app . && go test ./...", False, ["go build -o bin/app ."]),
        ("go build . && go test ./...", False, ["go build ."]),
        ("go build ./... && go test ./...", True, ["go build ./..."]),
        ("cargo build && cargo test", False, ["cargo build"]),
        ("tsc && node --test dist/", False, ["tsc"]),
        ("tsc --noEmit && node --test src/a.test.ts", True, ["tsc --noEmit"]),
        ("go vet ./... && pytest", False, ["go vet ./..."]),
        ("ruff check . && eslint . && pytest", False, ["ruff check .", "eslint ."]),
        ("ruff check --fix . && pytest", False, []),
        ("ruff check --exit-zero . && pytest", False, []),
        ("ruff check . ; pytest", False, ["ruff check ."]),
        ("echo a; ruff check . && pytest;", True, ["ruff check ."]),
        ("ruff check . && mypy src && pytest", True, ["ruff check .", "mypy src"]),
    ],
)
def test_a_tool_is_a_check_of_its_own_only_if_the_tests_do_not_need_it(
    line: str, is_whole: bool, tools: list[str]
) -> None:
    wrapped = find_wrapped_tests(("sh", "-c", line), {"src/a.test.ts": b"", "src/a.ts": b""})
    assert wrapped is not None
    assert wrapped.is_whole is is_whole
    assert [" ".join(tool) for tool in wrapped.tools] == tools


@pytest.mark.parametrize("line", ["-ruff check .", "@-ruff check .", "ruff check . || true", "-mkdir -p out"])
def test_a_linter_whose_result_is_ignored_does_not_decide(line: str) -> None:
    wrapped = find_wrapped_tests(("make",), {"Makefile": f"all:\n\t{line}\n\tpytest spec\n".encode()})
    assert wrapped is not None
    assert (wrapped.command, wrapped.tools, wrapped.is_whole) == (("pytest", "spec"), (), True)


@pytest.mark.parametrize(
    ("wrapper", "files"),
    [
        ("make all", {"Makefile": b"all:\n\t-pytest spec\n"}),
        ("make all", {"Makefile": b"all:\n\tpytest one\n\tpytest two\n"}),
        ("make all", {"Makefile": b"all:\n\tpytest spec | tee log\n"}),
        ("make all", {"Makefile": b"all:\n\tpytest spec || true\n"}),
        ("python check.py", {"check.py": b"import pytest; pytest.main()"}),
        ("make none", {}),
        ("pytest spec", {}),
        ("tox -e lint", {"tox.ini": TOX}),
        ("npm test --workspaces", WORKSPACE),
        ("npm test -w list", WORKSPACE),
        ("npm test -w missing", WORKSPACE),
        ("npm test -w list -w @shop/cart", WORKSPACE),
        ("npm test -w @shop/cart -- --only", WORKSPACE),
        ("pnpm --filter @shop/* test", WORKSPACE),
    ],
)
def test_a_command_without_one_clear_test_command_stays_as_it_is(
    wrapper: str, files: dict[str, bytes]
) -> None:
    assert find_wrapped_tests(wrapper.split(), files) is None


def test_a_call_of_env_gives_variables_and_a_folder() -> None:
    argv = ("env", "-C", "backend/", "A=1", "B=2", "pytest", "-q")
    assert split_prefix(argv) == (argv[:5], ("pytest", "-q"))
    assert find_working_folder(argv) == "backend"
    assert is_pytest_command(argv)
    assert add_prefix("repo", ("C=3",), argv) == (
        "env", "-C", "repo/backend", "C=3", "A=1", "B=2", "pytest", "-q",
    )  # fmt: skip


@pytest.mark.parametrize("argv", [("env", "-i", "pytest"), ("env",), ("env", "A=1"), ("pytest",), ()])
def test_other_calls_of_env_are_no_prefix(argv: tuple[str, ...]) -> None:
    assert split_prefix(argv) == ((), argv)
    assert find_working_folder(argv) == ""

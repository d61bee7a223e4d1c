"""Recognising and resolving the commands of Python projects."""

from __future__ import annotations

import pytest

from suture.project.languages import (
    Interpreter,
    is_pytest_command,
    program_environment,
    pytest_equivalent,
    resolve_command,
)

INTERPRETER = Interpreter(
    executable="/p/.venv/bin/python",
    prefix="/p/.venv",
    base_prefix="/usr",
    version="3.12.1",
    site_packages=("/p/.venv/lib/python3.12/site-packages",),
    origin="a test",
    source_roots=("src", "."),
)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pytest", True),
        ("py.test -q", True),
        ("/x/bin/pytest tests", True),
        ("python -m pytest -q", True),
        ("python3 -X dev -W error -m pytest", True),
        ("python3.12 -I -mpytest", True),
        ("/p/.venv/bin/python -m pytest", True),
        ("python -m unittest", False),
        ("python -m pytest_extra", False),
        ("python run.py -m pytest", False),
        ("python -c pass -m pytest", False),
        ("python -", False),
        ("python", False),
        ("tox -m pytest", False),
        ("", False),
    ],
)
def test_pytest_commands_are_recognised(command: str, expected: bool) -> None:
    assert is_pytest_command(command.split()) is expected


@pytest.mark.parametrize(
    ("command", "resolved"),
    [
        ("python -m pytest -q", "/p/.venv/bin/python -m pytest -q"),
        ("python3 x.py", "/p/.venv/bin/python x.py"),
        ("python3.12 x.py", "/p/.venv/bin/python x.py"),
        ("pytest -k python", "/p/.venv/bin/python -m pytest -k python"),
        ("/usr/bin/python3 x.py", "/usr/bin/python3 x.py"),
        ("pythonic python", "pythonic python"),
        ("make test", "make test"),
        ("", ""),
    ],
)
def test_a_command_is_resolved_to_the_interpreter(command: str, resolved: str) -> None:
    assert resolve_command(command.split(), INTERPRETER) == tuple(resolved.split())


def test_the_environment_names_the_interpreter_and_the_source_roots() -> None:
    assert program_environment(INTERPRETER, "/box") == {
        "PATH": "/p/.venv/bin:/usr/local/bin:/usr/bin:/bin",
        "MALLOC_ARENA_MAX": "1",
        "VIRTUAL_ENV": "/p/.venv",
        "PYTHONPATH": "/box/src:/box",
    }


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python -m unittest", ". test*.py"),
        ("python3 -W error -m unittest discover -s tests -p check_*.py -v", "tests check_*.py"),
        ("python -m unittest tests.test_cart", "tests/test_cart.py test*.py"),
        (
            "python -munittest -f tests.test_cart.CartTest.test_total tests/test_tax.py",
            "tests/test_cart.py::CartTest::test_total tests/test_tax.py test*.py",
        ),
        ("python -m pytest", None),
        ("python run.py -m unittest", None),
        ("make test", None),
        ("", None),
    ],
)
def test_a_unittest_command_has_a_pytest_equivalent(command: str, expected: str | None) -> None:
    argv = command.split()
    if expected is None:
        assert pytest_equivalent(argv) is None
    else:
        *targets, pattern = expected.split()
        pytest_argv = (argv[0], "-m", "pytest", "-o", f"python_files={pattern}", *targets)
        assert pytest_equivalent(argv) == pytest_argv

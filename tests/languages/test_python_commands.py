"""Commands of Python projects."""

from __future__ import annotations

import pytest

from suture.languages import Interpreter, is_pytest_command, program_environment, resolve_command

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
    ("command", "answer"),
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
def test_which_commands_run_pytest(command: str, answer: bool) -> None:
    assert is_pytest_command(command.split()) is answer


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
def test_what_the_words_mean(command: str, resolved: str) -> None:
    assert resolve_command(command.split(), INTERPRETER) == tuple(resolved.split())


def test_programs_find_their_interpreter_and_the_project() -> None:
    assert program_environment(INTERPRETER, "/box") == {
        "PATH": "/p/.venv/bin:/usr/local/bin:/usr/bin:/bin",
        "VIRTUAL_ENV": "/p/.venv",
        "PYTHONPATH": "/box/src:/box",
    }

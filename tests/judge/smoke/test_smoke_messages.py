"""What a failed start of a project says to the model that repairs it."""

from __future__ import annotations

from suture.judge.smoke.smoke_program import ErrorFormat
from suture.project.languages import LANGUAGES

PYTHON = ErrorFormat("Traceback (most recent call last)", LANGUAGES["python"].error_pattern.pattern)
OWN_LINE = 'File "/tmp/place-1/project/todo/__main__.py", line 6, in main'
OWN_TRACEBACK = f"""Traceback (most recent call last):
  {OWN_LINE}
    parser.add_argument("--help")
"""
LIBRARY_FRAMES = """  File "/usr/lib/python3.11/argparse.py", line 1608, in _check_conflict
    conflict_handler(action, confl_optionals)
  File "/usr/lib/python3.11/argparse.py", line 1628, in _handle_conflict_error
    raise ArgumentError(action, message % conflict_string)
"""
ERROR = "argparse.ArgumentError: argument --help: conflicting option string: --help\n"


def test_an_error_that_a_library_raises_names_the_line_of_the_project() -> None:
    message = PYTHON.shorten(OWN_TRACEBACK + LIBRARY_FRAMES + ERROR)

    assert f'{OWN_LINE} / parser.add_argument("--help")' in message
    assert ERROR.strip() in message


def test_a_line_of_the_project_is_named_once() -> None:
    message = PYTHON.shorten(OWN_TRACEBACK + ERROR)

    assert message.count(OWN_LINE) == 1


def test_an_error_without_a_line_of_the_project_has_its_last_lines() -> None:
    assert "_handle_conflict_error" in PYTHON.shorten(LIBRARY_FRAMES + ERROR)

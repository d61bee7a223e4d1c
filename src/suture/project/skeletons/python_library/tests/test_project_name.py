"""The library offers something, describes all that it offers, and prints nothing when it is imported."""

from __future__ import annotations

import importlib
import inspect

import pytest

import project_name


def find_public_objects():
    """Return the public functions and classes that the library defines."""
    return {
        name: value
        for name, value in vars(project_name).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__.startswith(project_name.__name__)
    }


def test_there_is_a_function_or_class():
    if not find_public_objects():
        pytest.fail("The library defines no public function or class.")


def test_all_public_objects_have_a_docstring():
    missing = [name for name, value in find_public_objects().items() if not inspect.getdoc(value)]
    if missing:
        pytest.fail(f"These have no docstring: {', '.join(missing)}.")


def test_the_import_prints_nothing(capsys):
    importlib.reload(project_name)
    captured = capsys.readouterr()
    if captured.out + captured.err:
        pytest.fail("The library prints something when it is imported.")

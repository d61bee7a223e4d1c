"""A pytest plugin that runs a Django project's tests as `manage.py test` does.

It runs inside the sandbox, in the user's own interpreter: Python 3.8 syntax, the standard library, pytest and
Django only. The project's own test runner prepares the settings, the system checks and the databases; pytest
collects and runs the tests, in Django's order.
"""

from __future__ import annotations

import ast
import os
import sys
import unittest
from typing import Any

import pytest

SETTINGS_VARIABLE = "DJANGO_SETTINGS_MODULE"


def pytest_addoption(parser: Any) -> None:
    """Add the options that stand for those of `manage.py test`."""
    parser.addoption("--django-manage", default="manage.py")
    parser.addoption("--django-settings", default="")
    parser.addoption("--django-pattern", default="test*.py")
    parser.addoption("--django-label", action="append", default=[])


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: Any) -> None:
    """Start to prepare Django before any file of the project is imported by pytest."""
    options = early_config.known_args_namespace
    early_config.pluginmanager.register(DjangoTests(options), "suture-django-tests")


class DjangoTests:
    """Prepares Django, and selects and orders the tests.

    Args:
        options: The options of `pytest_addoption`.
    """

    def __init__(self, options: Any) -> None:
        self._options = options
        self._folder = os.path.dirname(os.path.abspath(options.django_manage))
        self._fault = None  # type: Any
        self._runner = None  # type: Any
        self._databases = None  # type: Any

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: Any) -> None:
        """Load the settings and all apps, and say which files hold tests."""
        sys.path[:] = [self._folder, *(path for path in sys.path if path != self._folder)]
        name = self._options.django_settings or os.environ.get(SETTINGS_VARIABLE)
        os.environ[SETTINGS_VARIABLE] = name or find_settings(self._options.django_manage)
        config.addinivalue_line("python_files", self._options.django_pattern)
        config._inicache["python_files"] = [self._options.django_pattern]
        labels = self._options.django_label
        config.args = [self._find_label(label) for label in labels] or [self._folder]
        try:
            import django
            from django.conf import settings
            from django.test.utils import get_runner

            django.setup()
            self._runner = get_runner(settings)(verbosity=0, interactive=False)
            self._runner.setup_test_environment()
        except Exception as fault:
            self._fault = fault

    def _find_label(self, label: str) -> str:
        """Return pytest's argument for a label, such as `shop.tests.ItemTests.test_name` or a folder."""
        path = os.path.join(self._folder, label)
        if os.path.exists(path):
            return path
        parts = label.split(".")
        for count in range(len(parts), 0, -1):
            stem = os.path.join(self._folder, *parts[:count])
            if os.path.isfile(stem + ".py"):
                return "::".join([stem + ".py", *parts[count:]])
            if os.path.isdir(stem) and count == len(parts):
                return stem
        raise pytest.UsageError("there are no tests for the label " + repr(label))

    def pytest_collectstart(self, collector: Any) -> None:
        """Report in each test file why Django could not start."""
        if self._fault is not None and isinstance(collector, pytest.Module):
            fault, module = self._fault, collector  # type: Any, Any

            def fail() -> Any:
                raise fault

            module.collect = fail

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: Any, items: Any) -> None:
        """Keep the tests that unittest knows, in Django's order: those that roll back their changes come first."""
        kept = [item for item in items if is_unittest(item)]
        others = [item for item in items if not is_unittest(item)]
        if others:
            config.hook.pytest_deselected(items=others)
        items[:] = sorted(kept, key=find_rank)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: Any) -> None:
        """Run the system checks and create the databases, before any process is forked for a test."""
        if self._runner is None or session.config.option.collectonly or not session.items:
            return
        try:
            tests = [item.cls(getattr(item, "originalname", None) or item.name) for item in session.items]
            needed = self._runner.get_databases(tests)
            self._databases = self._runner.setup_databases(aliases=needed)
            self._runner.run_checks(needed)
        except (Exception, SystemExit) as fault:
            self._fault = fault

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Fail each test if the checks or the databases failed."""
        if self._fault is not None:
            raise self._fault

    def pytest_sessionfinish(self) -> None:
        """Remove the databases."""
        if self._databases is not None:
            databases, self._databases = self._databases, None
            self._runner.teardown_databases(databases)


def is_unittest(item: Any) -> bool:
    """Return whether unittest would run a test that pytest has collected."""
    return isinstance(getattr(item, "cls", None), type) and issubclass(item.cls, unittest.TestCase)


def find_rank(item: Any) -> int:
    """Return the position of a test's class in Django's order."""
    from django.test import SimpleTestCase, TestCase

    if issubclass(item.cls, TestCase):
        return 0
    return 1 if issubclass(item.cls, SimpleTestCase) else 2


def find_settings(manage: str) -> str:
    """Return the settings module that `manage.py` names; empty if it names none."""
    with open(manage, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    for node in ast.walk(tree):
        values = []  # type: list[Any]
        if isinstance(node, ast.Call):
            values = [getattr(argument, "value", None) for argument in node.args]
        elif isinstance(node, ast.Assign):
            target = getattr(node.targets[0], "slice", None)
            target = getattr(target, "value", target)  # Python 3.8 has a node around the index
            values = [getattr(target, "value", target), getattr(node.value, "value", None)]
        if len(values) >= 2 and values[-2] == SETTINGS_VARIABLE and isinstance(values[-1], str):
            return values[-1]
    return ""

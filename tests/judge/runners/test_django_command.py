"""Django's own test command: its tests are found, reported and tried one by one."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from project_files import write_files
from requirements import Require
from suture.core.records import Candidate
from suture.core.settings import SandboxSettings
from suture.judge import Suite, check_candidate, prepare_suite
from suture.loop.intake.heal_task import build_heal_task
from suture.project.languages import find_django_tests
from suture.sandbox import Sandbox, discover_interpreter

pytestmark = pytest.mark.timeout(300)
BOOKING = """from django.db import models


class Booking(models.Model):
    guest = models.CharField(max_length=9)
    nights = models.IntegerField()

    @classmethod
    def long(cls):
        return [one.guest for one in cls.objects.filter(nights__gt=6)]
"""
TESTS = """from django.test import TestCase

from .models import Booking


class LongTest(TestCase):
    def test_a_week_is_long(self):
        Booking.objects.create(guest="ann", nights=7)
        Booking.objects.create(guest="bob", nights=6)
        self.assertEqual(Booking.long(), ["ann"])

    def test_each_test_has_an_empty_table(self):
        self.assertEqual(Booking.long(), [])


def test_of_pytest_alone():
    raise RuntimeError("Django would not run this")
"""
FILES = {
    "manage.py": """import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hotel.settings")
if __name__ == "__main__":
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
""",
    "hotel/__init__.py": "",
    "hotel/settings.py": """SECRET_KEY = "k"
INSTALLED_APPS = ["rooms"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
""",
    "rooms/__init__.py": "",
    "rooms/models.py": BOOKING,
    "rooms/tests.py": TESTS,
}


@pytest.fixture
def has_django(require: Require) -> None:
    require("django", find_spec("django") is not None, "Django is not installed")


async def prepare_django(folder: Path, sandbox: Sandbox, changes: dict[str, str]) -> Suite:
    task, _ = build_heal_task(write_files(folder, {**FILES, **changes}))
    assert task.test_command == ("python", "manage.py", "test")
    return await prepare_suite(task, sandbox, SandboxSettings(), discover_interpreter(folder, {}), run=True)


def make_candidate(old: str, new: str) -> Candidate:
    return Candidate(files={"rooms/models.py": BOOKING.replace(old, new)}, origin="sample")


@pytest.mark.heavy
@pytest.mark.usefixtures("has_django")
async def test_each_test_of_django_is_judged(tmp_path: Path, sandbox: Sandbox) -> None:
    suite = await prepare_django(tmp_path, sandbox, {"rooms/models.py": BOOKING.replace("__gt", "__lt")})
    base = await check_candidate(Candidate(files={}, origin="user"), suite)
    week = "rooms/tests.py::LongTest::test_a_week_is_long"
    assert base.failed == {week}
    assert len(base.outcomes) == 2
    assert suite.command is not None
    assert suite.command.is_pytest

    assert (await check_candidate(make_candidate("__gt", "__gt"), suite)).all_passed
    assert (await check_candidate(make_candidate("__gt=6", "__gt=7"), suite)).failed == {week}


@pytest.mark.heavy
@pytest.mark.usefixtures("has_django")
async def test_a_model_that_cannot_be_loaded_fails_each_test(tmp_path: Path, sandbox: Sandbox) -> None:
    suite = await prepare_django(
        tmp_path, sandbox, {"rooms/models.py": f"from math import nothing\n{BOOKING}"}
    )
    base = await check_candidate(Candidate(files={}, origin="user"), suite)
    assert not base.passed
    assert any("ImportError" in fact.exception for fact in base.counterexamples)
    assert (await check_candidate(make_candidate("__gt", "__gt"), suite)).all_passed


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("python manage.py test", ()),
        ("./manage.py test --keepdb -v 2 --parallel 4", ()),
        ("python manage.py test rooms", ("--django-label=rooms",)),
        ("python manage.py test --settings=hotel.other", ("--django-settings=hotel.other",)),
        ("python manage.py test -p check_*.py", ("--django-pattern=check_*.py",)),
        ("python manage.py migrate", None),
        ("python manage.py test --tag slow", None),
        ("python test.py", None),
    ],
)
def test_options_of_django_have_their_counterparts(command: str, arguments: tuple[str, ...] | None) -> None:
    found = find_django_tests(command.split())
    assert (found if found is None else found[3:]) == arguments

"""Django's test command: how it is recognised, and how pytest runs the same tests with Suture's plugin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

MANAGE_FILE = "manage.py"
SETTINGS_VARIABLE = "DJANGO_SETTINGS_MODULE"
PLUGIN = "suture_django"
"""The module name of the plugin inside the sandbox; see `suture.judge.runners.report_plugin.django_plugin`."""
OPTIONS_WITH_VALUE = ("-v", "--verbosity", "--settings", "-p", "--pattern", "-k", "--pythonpath", "-t")
IGNORED_OPTIONS = (
    "--noinput", "--no-input", "--keepdb", "--failfast", "--traceback", "--no-color", "--force-color", "--timing",
    "--debug-mode", "--buffer", "-b", "--parallel", "--shuffle", "--durations", "-v", "--verbosity",
)  # fmt: skip
"""Options that change neither which tests run nor their outcome."""


def find_django_tests(argv: Sequence[str]) -> tuple[str, ...] | None:
    """Return pytest's arguments for the tests of `manage.py test`; `None` for any other command.

    It is also `None` for options that pytest has no counterpart for, such as `--tag`.

    Args:
        argv: The command, without a call of `env`.
    """
    words = list(argv)
    names = [PurePosixPath(word).name for word in words[:3]]
    is_program = names[:1] == [MANAGE_FILE]
    if MANAGE_FILE not in names[:2] or names[1 if is_program else 2 :][:1] != ["test"]:
        return None
    manage = words[0 if is_program else 1]
    arguments = ["-p", PLUGIN, f"--django-manage={manage}"]
    rest = iter(words[2 if is_program else 3 :])
    previous = ""
    for word in rest:
        is_count = previous == "--parallel" and (word.isdecimal() or word == "auto")
        previous = word
        if is_count:
            continue
        option, equals_sign, value = word.partition("=")
        if not word.startswith("-"):
            arguments.append(f"--django-label={word}")
            continue
        if option in OPTIONS_WITH_VALUE and not equals_sign:
            value = next(rest, "")
        if option == "--settings":
            arguments.append(f"--django-settings={value}")
        elif option in ("-p", "--pattern"):
            arguments.append(f"--django-pattern={value}")
        elif option not in IGNORED_OPTIONS and not option.startswith("-v"):
            return None
    return tuple(arguments)

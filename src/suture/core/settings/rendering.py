"""Settings as people read them: one row each, without what is secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr

from suture.core.settings.schema import Settings, setting_fields

MASK = "********"
_PASSWORD_IN_ADDRESS = re.compile(r"(?<=://)[^/\s]*@")
_REST_OF_ADDRESS = re.compile(r"(://[^\s?#]*[?#])\S+")
"""What follows the path: a key may stand there."""


def render_settings(settings: Settings, origins: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Each setting as key, value and origin, in the order of the schema; keys are masked."""
    plain = {name: dict(group) for name, group in settings}
    rows: list[tuple[str, str, str]] = []
    for key in setting_fields():
        group, _, field = key.partition(".")
        rows.append((key, shown(plain[group][field]), origins[key]))
    return rows


def shown(value: object) -> str:
    """One value; keys, and passwords and queries in addresses, are masked."""
    if value is None:
        return "unset"
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return _REST_OF_ADDRESS.sub(rf"\1{MASK}", _PASSWORD_IN_ADDRESS.sub(f"{MASK}@", str(value)))


_WANTED = (
    ("int_", "a whole number"),
    ("float_", "a number"),
    ("bool_", "true or false"),
    ("string_", "a text"),
    ("list_", "a list"),
    ("finite_", "a finite number"),
    ("literal_", "one of {expected}"),
    ("greater_than_equal", "at least {ge:g}"),
    ("greater_than", "more than {gt:g}"),
    ("less_than_equal", "at most {le:g}"),
    ("less_than", "less than {lt:g}"),
)
"""How the kind of an error of pydantic begins, and what is wanted; the first that fits counts."""


def say_refusal(where: str, error: Mapping[str, Any], said: object, *, secret: bool = False) -> str:
    """One line for a value that cannot be taken.

    Args:
        where: Whose value it is, such as a setting and its origin.
        error: One of those that a `ValidationError` holds.
        said: The value, as it was given.
        secret: Whether it must not be repeated.
    """
    quoted = MASK if secret else repr(shown(said) if isinstance(said, str) else said)
    wanted = next((words for kind, words in _WANTED if error["type"].startswith(kind)), "")
    if wanted:
        return f"{where}: {wanted.format(**error.get('ctx', {}))} is wanted, not {quoted}"
    why = str(error["msg"]).removeprefix("Value error, ").removesuffix(".")
    return f"{where}: {why}" if quoted in why else f"{where}: {quoted} is wrong: {why}"


def value_that_would_do(key: str) -> str:
    """What can be done about a setting's value: its default, where it has one."""
    default = setting_fields()[key].default if key in setting_fields() else None
    if default is None or isinstance(default, tuple) or shown(default) in ("", MASK):
        return "docs/settings.md says what it takes"
    return f"such as {str(default).lower() if isinstance(default, bool) else shown(default)}, the default"

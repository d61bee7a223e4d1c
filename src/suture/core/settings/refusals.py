"""What a value should have been, where pydantic refuses it: our words, and a value that would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suture.core.settings.rendering import MASK, shown
from suture.core.settings.schema import setting_fields

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

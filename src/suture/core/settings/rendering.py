"""Turn settings, and errors about invalid values, into text for people. Secrets are masked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr

from suture.core.settings.schema import Settings
from suture.core.settings.setting_keys import get_setting, setting_fields

MASK = "********"
_PASSWORD_IN_ADDRESS = re.compile(r"(?<=://)[^/\s]*@")
_QUERY_OF_ADDRESS = re.compile(r"(://[^\s?#]*[?#])\S+")
"""The part of an address after `?` or `#`, which may contain a key."""

_EXPECTED = (
    ("int_", "a whole number"),
    ("float_", "a number"),
    ("bool_", "true or false"),
    ("string_too_short", "text that is not empty"),
    ("string_", "text"),
    ("list_", "a list"),
    ("finite_", "a finite number"),
    ("literal_", "one of {expected}"),
    ("greater_than_equal", "at least {ge:g}"),
    ("greater_than", "more than {gt:g}"),
    ("less_than_equal", "at most {le:g}"),
    ("less_than", "less than {lt:g}"),
)
"""(beginning of pydantic's error type, what is expected). The first match counts."""


def render_settings(settings: Settings, origins: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return (name, value, origin) of each setting as text, in the order of `Settings`. API keys are masked."""
    return [(key, format_value(get_setting(settings, key)), origins[key]) for key in setting_fields()]


def format_value(value: object) -> str:
    """Return a value as text. Keys, and passwords and queries in addresses, are masked."""
    if value is None:
        return "unset"
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return _QUERY_OF_ADDRESS.sub(rf"\1{MASK}", _PASSWORD_IN_ADDRESS.sub(f"{MASK}@", str(value)))


def describe_invalid_value(
    where: str, error: Mapping[str, Any], value: object, *, secret: bool = False
) -> str:
    """Return one line that says why a value is invalid.

    Args:
        where: The setting, and where the value comes from, if that is known.
        error: An error of a pydantic `ValidationError`.
        secret: Whether the value must not be repeated.
    """
    quoted = MASK if secret else repr(format_value(value) if isinstance(value, str) else value)
    expected = next((words for kind, words in _EXPECTED if error["type"].startswith(kind)), "")
    if expected:
        return f"{where} must be {expected.format(**error.get('ctx', {}))}, not {quoted}"
    why = str(error["msg"]).removeprefix("Value error, ").removesuffix(".")
    return f"{where}: {why}" if quoted in why else f"{where}: {quoted} is wrong: {why}"


def suggest_value(key: str) -> str:
    """Return a remedy for an invalid value of a setting: its default, if it has one."""
    default = setting_fields()[key].default if key in setting_fields() else None
    if default is None or isinstance(default, tuple) or format_value(default) in ("", MASK):
        return "docs/settings.md says what it takes"
    return (
        f"such as {str(default).lower() if isinstance(default, bool) else format_value(default)}, the default"
    )

"""Turn settings, and errors about invalid values, into text for people. Secrets are masked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from suture.core.settings.schema import Settings
from suture.core.settings.service_settings import SettingsGroup

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


def is_secret(key: str) -> bool:
    """Return whether the value of a setting must never be shown."""
    return key.startswith("keys.") or key.endswith("_key")


def setting_fields() -> dict[str, FieldInfo]:
    """Return every setting as `group.field`, in the order of `Settings`. A group may contain another one."""
    return {
        f"{name}.{field}": info
        for name, group in setting_groups().items()
        for field, info in group.model_fields.items()
        if group_in(info) is None
    }


def setting_groups() -> dict[str, type[SettingsGroup]]:
    """Return all groups by their dotted names, each before the groups that it contains."""
    return dict(_groups_below(Settings))


def _groups_below(parent: type[SettingsGroup], prefix: str = "") -> Iterator[tuple[str, type[SettingsGroup]]]:
    for name, info in parent.model_fields.items():
        group = group_in(info)
        if group is not None:
            yield prefix + name, group
            yield from _groups_below(group, f"{prefix}{name}.")


def group_in(field: FieldInfo) -> type[SettingsGroup] | None:
    """Return the group that a field holds; `None` if the field is a setting itself."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, SettingsGroup) else None


def get_setting(settings: Settings, key: str) -> object:
    """Return the value of a setting by its dotted key."""
    value: object = settings
    for name in key.split("."):
        value = getattr(value, name)
    return value


def nest_settings(values: Mapping[str, object]) -> dict[str, Any]:
    """Return values by dotted key as nested mappings, from which pydantic makes `Settings`."""
    groups: dict[str, Any] = {}
    for key, value in values.items():
        *path, field = key.split(".")
        group = groups
        for name in path:
            group = group.setdefault(name, {})
        group[field] = value
    return groups


def key_of_error(location: Sequence[int | str]) -> str:
    """Return the dotted key of the setting that pydantic's error location names."""
    keys = setting_fields()
    prefixes = (".".join(map(str, location[:length])) for length in range(len(location), 0, -1))
    return next((prefix for prefix in prefixes if prefix in keys), ".".join(map(str, location[:2])))

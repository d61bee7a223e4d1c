"""Look up settings by their dotted keys: every setting and group, values, and the keys that errors name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic.fields import FieldInfo

from suture.core.settings.schema import Settings, SettingsGroup


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

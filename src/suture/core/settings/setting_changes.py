"""Change the settings in a file and in memory, and record them with a run."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from suture.core.safe_files import create_file, write_text_atomically
from suture.core.settings.loading import user_file
from suture.core.settings.rendering import (
    describe_invalid_value,
    get_setting,
    group_in,
    is_secret,
    key_of_error,
    nest_settings,
    setting_fields,
    suggest_value,
)
from suture.core.settings.schema import USER_ONLY_SETTINGS, Settings
from suture.core.settings.service_settings import SettingsGroup
from suture.core.settings.setting_sources import flag_layer, read_settings_text
from suture.errors import UsageError

MACHINE_GROUPS = ("keys", "memory", "paths", "project", "store", "log")
"""Groups of settings about the user and the machine. They are not recorded with a run."""
CREDENTIALS_IN_ADDRESS = re.compile(r"(?<=://)[^/\s@]*@")


def set_value(key: str, text: str, *, project: Path | None, environ: Mapping[str, str]) -> Path:
    """Write one setting into the user's own file, or into a project's `suture.toml`.

    Everything else in the file, including its comments, stays as it is.

    Args:
        key: The dotted name of the setting.
        project: The project's folder; `None` for the user's own file.

    Returns:
        The path of the file.

    Raises:
        UsageError: There is no such setting, the value is invalid, or no project may set it. The file is a
            link, or is not TOML.
        StorageError: The file cannot be written.
    """
    import tomlkit  # not at the top: only this function needs it, and importing it takes a while
    from tomlkit.exceptions import TOMLKitError

    flag_layer({key: text})  # raises an error for an unknown setting
    if project is not None and key in USER_ONLY_SETTINGS:
        raise UsageError(f"{key}: a project's own files have no say in this", remedy="leave out --project")
    value = _parse_value(key, text)
    path = user_file(environ).resolve() if project is None else project / "suture.toml"
    if path.is_symlink():
        raise UsageError(f"{str(path)!r} is a link", remedy="change the file that it leads to")
    try:
        document: Any = tomlkit.parse(read_settings_text(path))
    except TOMLKitError as fault:
        raise UsageError(f"{str(path)!r} is not TOML: {fault}", remedy="fix it first") from fault
    *groups, name = key.split(".")
    table = document
    for group in groups:
        table = table.setdefault(group, tomlkit.table())
        if not isinstance(table, dict):
            raise UsageError(f"{str(path)!r}: {group} is no table", remedy="fix it first")
    table[name] = value
    write_text_atomically(path, tomlkit.dumps(document))
    return path


def create_settings_file(path: Path, text: str) -> None:
    """Write a new settings file.

    Raises:
        UsageError: The file exists already.
        StorageError: The file cannot be written.
    """
    if not create_file(path, text):
        raise UsageError(f"{str(path)!r} exists already", remedy="suture config set KEY VALUE")


def _parse_value(key: str, text: str) -> object:
    """Return the value of a setting that the user typed.

    The string is read as TOML. If it is not TOML, or has the wrong type for the setting, the string itself is the
    value: a model called `4` needs no quotes.

    Raises:
        UsageError: The value is invalid.
    """
    try:
        value: object = tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        value = text
    error = _find_error(key, value)
    if error and not isinstance(value, str) and not _find_error(key, text):
        return text
    if error:
        raise UsageError(
            describe_invalid_value(key, error, text, secret=is_secret(key)),
            remedy=suggest_value(key),
        )
    return value


def _find_error(key: str, value: object) -> Mapping[str, Any] | None:
    """Return pydantic's error about a value of a setting, or `None` if the value is valid."""
    try:
        Settings.model_validate(nest_settings({key: value}))
    except ValidationError as fault:
        return {**fault.errors(include_input=False)[0]}  # the input may be a key
    return None


def encode_settings(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return the settings as JSON values for a run folder.

    Keys, other secrets, passwords in addresses, and the groups of the machine are left out.
    """
    return {
        name: {
            field: _without_credentials(value)
            for field, value in group.model_dump(mode="json").items()
            if not isinstance(getattr(group, field), SecretStr)
        }
        for name, group in settings
        if name not in MACHINE_GROUPS
    }


def restore_settings(
    recorded: Mapping[str, Mapping[str, Any]], present: Settings, *, is_own: bool = True
) -> Settings:
    """Return the settings of a recorded run, with the secrets and the folders of the present settings.

    Args:
        recorded: The value of `encode_settings`. Unknown settings are ignored, and missing ones get their
            defaults, because another version of Suture may have written the record.
        is_own: Whether the record is the user's own. A record of somebody else chooses neither the sandbox nor
            an address.

    Raises:
        UsageError: A recorded value is invalid in this version.
    """
    groups: dict[str, Any] = {}
    for name, group in present:
        recorded_values = recorded.get(name)
        if name in MACHINE_GROUPS or recorded_values is None:
            groups[name] = group
            continue
        values = _known_values(type(group), recorded_values)
        for field, present_value in group:
            is_same_address = isinstance(present_value, str) and (
                _without_credentials(present_value) == values.get(field)
            )
            is_address = field.endswith("base_url")
            is_users_choice = name == "sandbox" or is_address or f"{name}.{field}" in USER_ONLY_SETTINGS
            # Records hold neither keys nor the passwords in addresses.
            if isinstance(present_value, SecretStr) or is_same_address or (is_users_choice and not is_own):
                values[field] = present_value
        groups[name] = values
    try:
        return Settings.model_validate(groups)
    except ValidationError as fault:
        keys = ", ".join(".".join(map(str, error["loc"])) for error in fault.errors())
        raise UsageError(
            f"the run was recorded with settings that this version refuses: {keys}",
            remedy="use the version of Suture that recorded it",
        ) from fault


def _known_values(group: type[SettingsGroup], recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recorded values of a group, without settings that this version does not have."""
    fields = group.model_fields
    return {
        name: value if (inner := group_in(fields[name])) is None else _known_values(inner, value)
        for name, value in recorded.items()
        if name in fields
    }


def override_settings(settings: Settings, changes: Mapping[str, object]) -> Settings:
    """Return settings in which some values are replaced.

    Args:
        changes: Dotted key -> new value, which may be a string that pydantic converts.

    Raises:
        UsageError: There is no such setting, or the value is invalid.
    """
    values = {key: get_setting(settings, key) for key in setting_fields()}
    try:
        return Settings.model_validate(
            nest_settings({**values, **{key: changes[key] for key in flag_layer(changes)}})
        )
    except ValidationError as fault:
        error = fault.errors()[0]
        key = key_of_error(error["loc"])
        raise UsageError(
            describe_invalid_value(key, error, changes.get(key)), remedy=suggest_value(key)
        ) from None


def _without_credentials(value: Any) -> Any:
    return CREDENTIALS_IN_ADDRESS.sub("", value) if isinstance(value, str) else value

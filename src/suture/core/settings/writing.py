"""Settings written into a file, with what else stands there left as it is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from suture.core.safe_files import create_file, replace_file
from suture.core.settings.loading import user_file
from suture.core.settings.rendering import say_refusal, value_that_would_do
from suture.core.settings.schema import THE_USERS_ALONE, Settings
from suture.core.settings.sources import flag_layer, settings_text
from suture.errors import UsageError


def set_value(key: str, text: str, *, project: Path | None, environ: Mapping[str, str]) -> Path:
    """Write one setting into the user's own file, or into a project's `suture.toml`.

    Args:
        key: The setting, dotted.
        text: Its value: TOML, or else a text.
        project: The project's folder; the user's own file where not given.
        environ: The environment, which says where that file is.

    Returns:
        The file.

    Raises:
        UsageError: There is no such setting, it cannot have the value, no project may set it, or the file is
            no TOML or a link.
        StorageError: The file cannot be written.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    flag_layer({key: text})  # refuses a key that is none
    if project is not None and key in THE_USERS_ALONE:
        raise UsageError(f"{key}: a project's own files have no say in this", remedy="leave out --project")
    value = _checked(key, text)
    path = user_file(environ).resolve() if project is None else project / "suture.toml"
    if path.is_symlink():
        raise UsageError(f"{str(path)!r} is a link", remedy="change the file that it leads to")
    try:
        document: Any = tomlkit.parse(settings_text(path))
    except TOMLKitError as fault:
        raise UsageError(f"{str(path)!r} is not TOML: {fault}", remedy="mend it first") from fault
    group, _, name = key.partition(".")
    if not isinstance(document.get(group, {}), dict):
        raise UsageError(f"{str(path)!r}: {group} is no table", remedy="mend it first")
    document.setdefault(group, tomlkit.table())[name] = value
    replace_file(path, tomlkit.dumps(document))
    return path


def new_file(path: Path, text: str) -> None:
    """Write a file that was not there.

    Raises:
        UsageError: There is one.
        StorageError: It cannot be written.
    """
    if not create_file(path, text):
        raise UsageError(f"{str(path)!r} is there already", remedy="suture config set KEY VALUE")


def _checked(key: str, text: str) -> object:
    """The value of a setting, as TOML knows it; what is none, or of another type, is a text.

    Raises:
        UsageError: The setting cannot have it.
    """
    try:
        value: object = tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        value = text
    wrong = _what_is_wrong(key, value)
    if wrong and not isinstance(value, str) and not _what_is_wrong(key, text):
        return text
    if wrong:
        raise UsageError(
            say_refusal(key, wrong, text, secret=key.startswith("keys.")), remedy=value_that_would_do(key)
        )
    return value


def _what_is_wrong(key: str, value: object) -> Mapping[str, Any] | None:
    """Why a setting cannot have a value, as pydantic tells it; nothing where it can."""
    from pydantic import ValidationError

    group, _, name = key.partition(".")
    try:
        Settings.model_validate({group: {name: value}})
    except ValidationError as fault:
        return {**fault.errors(include_input=False)[0]}  # the input may be a key
    return None


OF_THE_MACHINE = ("keys", "memory", "paths", "project", "store", "log")
"""Groups that belong to who runs, and not to the run."""
CREDENTIALS_IN_ADDRESS = re.compile(r"(?<=://)[^/\s@]*@")


def settings_as_plain(settings: Settings) -> dict[str, dict[str, Any]]:
    """The settings as JSON values, without keys, other secrets, and passwords inside addresses."""
    return {
        name: {
            field: _without_credentials(value)
            for field, value in group.model_dump(mode="json").items()
            if not isinstance(getattr(group, field), SecretStr)
        }
        for name, group in settings
        if name not in OF_THE_MACHINE
    }


def settings_of_record(
    plain: Mapping[str, Mapping[str, Any]], present: Settings, *, own: bool = True
) -> Settings:
    """The settings of a recorded run, with the secrets and the folders of today.

    Args:
        plain: What `settings_as_plain` made. Settings that are unknown here are passed over, and those that
            did not exist then have today's defaults.
        present: The settings of who asks.
        own: Whether the record is theirs. A stranger's decides neither on the wall nor on an address.

    Raises:
        UsageError: A value is refused by this version.
    """
    groups: dict[str, Any] = {}
    for name, group in present:
        recorded = plain.get(name)
        if name in OF_THE_MACHINE or recorded is None:
            groups[name] = group
            continue
        values = {field: value for field, value in recorded.items() if field in type(group).model_fields}
        for field, now in group:
            if isinstance(now, SecretStr) or (
                isinstance(now, str) and _without_credentials(now) == values.get(field)
            ):
                values[field] = now  # with the password that the record leaves out
            if not own and (name == "sandbox" or f"{name}.{field}" in (*THE_USERS_ALONE, "model.base_url")):
                values[field] = now
        groups[name] = values
    try:
        return Settings.model_validate(groups)
    except ValidationError as fault:
        wrong = ", ".join(".".join(map(str, error["loc"])) for error in fault.errors())
        raise UsageError(
            f"the run was recorded with settings that this version refuses: {wrong}",
            remedy="use the version of Suture that recorded it",
        ) from fault


def settings_with(settings: Settings, changes: Mapping[str, object]) -> Settings:
    """The settings with other values for some of them.

    Args:
        settings: The settings of this process.
        changes: Dotted key -> value, or the text of one.

    Raises:
        UsageError: There is no such setting, or the value is wrong.
    """
    groups = {name: dict(group) for name, group in settings}
    for key in flag_layer(changes):
        group, _, field = key.partition(".")
        groups[group][field] = changes[key]
    try:
        return Settings.model_validate(groups)
    except ValidationError as fault:
        error = fault.errors()[0]
        key = ".".join(map(str, error["loc"][:2]))
        raise UsageError(say_refusal(key, error, changes.get(key)), remedy=value_that_would_do(key)) from None


def _without_credentials(value: Any) -> Any:
    return CREDENTIALS_IN_ADDRESS.sub("", value) if isinstance(value, str) else value

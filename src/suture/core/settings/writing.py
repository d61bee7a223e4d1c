"""Settings written into a file, with what else stands there left as it is."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from suture.core.safe_files import create_file, replace_file
from suture.core.settings.merging import user_file
from suture.core.settings.refusals import say_refusal, value_that_would_do
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

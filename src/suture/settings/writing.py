"""Settings written into a file, with what else stands there left as it is."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from suture.errors import StorageError, UsageError
from suture.settings.loading import user_file
from suture.settings.schema import THE_USERS_ALONE, Settings
from suture.settings.sources import flag_layer, settings_text


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
    try:
        _written_beside(path, tomlkit.dumps(document)).replace(path)
    except OSError as fault:
        raise StorageError(f"{str(path)!r} cannot be written: {fault.strerror}") from fault
    return path


def new_file(path: Path, text: str) -> None:
    """Write a file that was not there.

    Raises:
        UsageError: There is one.
        StorageError: It cannot be written.
    """
    try:
        partial = _written_beside(path, text)
        try:
            path.hardlink_to(partial)  # unlike a renaming, it takes nothing's place
        finally:
            partial.unlink()
    except FileExistsError as fault:
        raise UsageError(f"{str(path)!r} is there already", remedy="suture config set KEY VALUE") from fault
    except OSError as fault:
        raise StorageError(f"{str(path)!r} cannot be written: {fault.strerror}") from fault


def _checked(key: str, text: str) -> object:
    """The value of a setting, as TOML knows it.

    Raises:
        UsageError: The setting cannot have it.
    """
    from pydantic import ValidationError

    try:
        value: object = tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        value = text
    group, _, name = key.partition(".")
    try:
        Settings.model_validate({group: {name: value}})
    except ValidationError as fault:
        # Not chained: the foreign error repeats the value, which may be a key.
        raise UsageError(f"{key} = {text!r} is wrong: {fault.errors()[0]['msg']}") from None
    return value


def _written_beside(path: Path, text: str) -> Path:
    """A whole file beside a place, with the rights of what is there, or for its owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".suture-", delete=False) as file:
        file.write(text)
    partial = Path(file.name)
    if path.is_file():
        partial.chmod(path.stat().st_mode & 0o777)
    return partial

"""Settings as a run folder keeps them: all that decides, and no secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr, ValidationError

from suture.core.settings.refusals import say_refusal, value_that_would_do
from suture.core.settings.schema import THE_USERS_ALONE, Settings
from suture.core.settings.sources import flag_layer
from suture.errors import UsageError

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

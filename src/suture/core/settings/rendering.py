"""Settings as people read them: one row each, without what is secret."""

from __future__ import annotations

import re
from collections.abc import Mapping

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

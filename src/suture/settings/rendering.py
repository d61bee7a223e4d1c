"""Settings as people read them: one row each, without what is secret."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import SecretStr

from suture.settings.schema import Settings, groups_of_settings, setting_fields
from suture.settings.sources import variable_of

MASK = "********"
_PASSWORD_IN_ADDRESS = re.compile(r"(?<=://)[^/\s]*@")
_REST_OF_ADDRESS = re.compile(r"(://[^\s?#]*[?#])\S+")
"""What follows the path: a key may stand there."""


@dataclass(frozen=True, kw_only=True)
class SettingDescription:
    """One setting for the docs: its dotted key, its variable, its default and what it does."""

    key: str
    variable: str
    default: str
    text: str


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


def describe_settings() -> list[SettingDescription]:
    """Every setting with the docstring under it, for the docs."""
    texts = {
        f"{name}.{field}": text
        for name, group in groups_of_settings().items()
        for field, text in docstrings_of_fields(group).items()
    }
    return [
        SettingDescription(
            key=key, variable=variable_of(key), default=shown(field.default), text=texts.get(key, "")
        )
        for key, field in setting_fields().items()
    ]


def docstrings_of_fields(group: type) -> dict[str, str]:
    """The text under each field of a class, read from its source; pydantic would read it at every start."""
    (found,) = ast.parse(inspect.getsource(group)).body
    body = found.body if isinstance(found, ast.ClassDef) else []
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }

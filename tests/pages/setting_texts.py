"""Descriptions of all settings, from the schema and the docstrings under its fields."""

from __future__ import annotations

import ast
import inspect
import itertools
from dataclasses import dataclass

from suture.core.settings.rendering import format_value, setting_fields, setting_groups
from suture.core.settings.setting_sources import variable_name


@dataclass(frozen=True, kw_only=True)
class SettingDescription:
    """A setting for the documentation: its dotted key, variable, default and meaning."""

    key: str
    variable: str
    default: str
    text: str


def describe_settings() -> list[SettingDescription]:
    """Return every setting with the docstring under it."""
    texts = {
        f"{name}.{field}": text
        for name, group in setting_groups().items()
        for field, text in read_field_docstrings(group).items()
    }
    return [
        SettingDescription(
            key=key,
            variable=variable_name(key),
            default=format_value(field.default),
            text=texts.get(key) or field.description or "",
        )
        for key, field in setting_fields().items()
    ]


def read_field_docstrings(group: type) -> dict[str, str]:
    """Return the docstring under each field of a class, read from its source.

    pydantic could collect them too, but would read them at every start of the program.
    """
    (definition,) = ast.parse(inspect.getsource(group)).body
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }

"""Prompts as files: one YAML per role, with a version and declared variables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

from suture.errors import UsageError
from suture.records import content_hash

__all__ = ["Prompt", "load_prompt"]


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """The templates of one role.

    Attributes:
        name: The role.
        version: Counted up with each change of meaning.
        templates: Template name -> its text, with `$variable` places.
        variables: Template name -> the variables it declares.
        hash: Content hash of all of it; stands in the ledger beside each call.
    """

    name: str
    version: int
    templates: dict[str, str]
    variables: dict[str, frozenset[str]]
    hash: str

    def render(self, template: str, **values: str) -> str:
        """Fill a template.

        Raises:
            UsageError: A variable is missing, or one is given that the template does not declare.
        """
        declared = self.variables[template]
        if declared != values.keys():
            odd = sorted(declared ^ values.keys())
            raise UsageError(
                f"prompt {self.name!r}, template {template!r}: variables {odd} are missing or unknown"
            )
        return Template(self.templates[template]).substitute(values).strip()


@cache
def load_prompt(name: str) -> Prompt:
    """The prompt file of a role.

    Raises:
        UsageError: There is no such file, or it is not a prompt.
    """
    import yaml

    source = files("suture.roles") / "prompts" / f"{name}.yaml"
    try:
        return _parse(yaml.safe_load(source.read_text("utf-8")))
    except FileNotFoundError as fault:
        raise UsageError(f"there is no prompt called {name!r}") from fault


def _parse(raw: dict[str, Any]) -> Prompt:
    templates = {key: value["text"] for key, value in raw["templates"].items()}
    variables = {key: frozenset(value["variables"]) for key, value in raw["templates"].items()}
    for key, text in templates.items():
        used = frozenset(Template(text).get_identifiers())
        if used != variables[key]:
            raise UsageError(
                f"prompt {raw['name']!r}, template {key!r}: it uses {sorted(used)}, and declares otherwise"
            )
    return Prompt(
        name=raw["name"],
        version=raw["version"],
        templates=templates,
        variables=variables,
        hash=content_hash(raw),
    )

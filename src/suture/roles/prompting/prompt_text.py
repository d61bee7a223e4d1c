"""A prompt as the text of a file: what `suture prompts show` prints and `diff` compares."""

from __future__ import annotations

from string import Template
from typing import Any

from suture.roles.prompting.prompt_files import Prompt

__all__ = ["prompt_as_plain", "prompt_as_yaml"]


def prompt_as_plain(prompt: Prompt) -> dict[str, Any]:
    """A prompt as the JSON values of its file, with every template written out."""
    templates: dict[str, Any] = {}
    for name, template in prompt.templates.items():
        used = sorted(Template(template.text).get_identifiers())
        templates[name] = {"variables": used, "text": template.text}
        rules = {part: rule.model_dump(exclude_defaults=True) for part, rule in template.shrink.items()}
        if rules:
            templates[name]["shrink"] = {part: rule for part, rule in rules.items() if part in used}
    return {"name": prompt.name, "version": prompt.version, "templates": templates}


def prompt_as_yaml(prompt: Prompt) -> str:
    """A prompt as a file that means the same; texts of several lines stand as they are."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes long texts as blocks."""

    def as_block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        style = "|" if "\n" in text else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, as_block)
    plain = prompt_as_plain(prompt)
    return str(yaml.dump(plain, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1000))

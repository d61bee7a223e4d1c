"""Read and check prompt files: the templates of one role, their variables, and how their parts shrink.

`PromptBook` holds the prompts of a run: Suture's own, or a project's in their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from suture.agents.tuning import MAX_PROMPT_FILE_BYTES
from suture.core.records import content_hash
from suture.core.safe_files import read_text_file
from suture.errors import UsageError


class FileModel(BaseModel):
    """Base of the models of a file: unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ShrinkRule(FileModel):
    """How a part of a prompt shrinks, by whole pieces.

    Attributes:
        keep: Which pieces stay: the first, the last, or both ends.
        least: How many pieces always stay.
        most: How many pieces are shown at most.
        most_chars: How many characters are shown at most.
        cut: The line in place of removed pieces; `$cut` is their number.
    """

    keep: Literal["first", "last", "ends"]
    least: int = Field(default=0, ge=0)
    most: int | None = Field(default=None, ge=1)
    most_chars: int | None = Field(default=None, ge=1)
    cut: str


class TemplateFile(FileModel):
    """A template as the file has it.

    Attributes:
        text: The text with `$variable` placeholders.
        variables: The variables that the text uses.
        shrink: Variable -> how its value shrinks, in the order in which the parts shrink. Without it, the rules
            of the packaged template apply.
    """

    text: str
    variables: frozenset[str]
    shrink: dict[str, ShrinkRule] | None = None


class PromptFile(FileModel):
    """A prompt file as it is written: the templates of one role."""

    name: str
    version: int = Field(ge=1)
    templates: dict[str, TemplateFile] = Field(min_length=1)


@dataclass(frozen=True, kw_only=True)
class PromptTemplate:
    """A checked template. All of its `variables` must be given, although the text need not use all of them."""

    text: str
    variables: frozenset[str]
    shrink: Mapping[str, ShrinkRule]


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """The templates of one role.

    Attributes:
        version: Incremented with each change of meaning.
        templates: Name of a template -> the template.
        hash: Content hash, which the ledger records with each call.
        source: The file's path, or `packaged`.
    """

    name: str
    version: int
    templates: Mapping[str, PromptTemplate]
    hash: str
    source: str = "packaged"

    def render(self, template: str, **values: str) -> str:
        """Return a template's text with its variables filled in.

        Raises:
            UsageError: A variable is missing, or one is given that the template does not have.
        """
        if mismatched := sorted(self.templates[template].variables ^ values.keys()):
            raise UsageError(
                f"prompt {self.name!r}, template {template!r}: variables {mismatched} are missing or unknown"
            )
        return Template(self.templates[template].text).substitute(values).strip()


def parse_prompt(raw: Any, source: str, packaged: Prompt | None = None) -> Prompt:
    """Check the content of a prompt file.

    Args:
        source: The file's name, for messages.
        packaged: Suture's own prompt that the file replaces. What the file omits is taken from it. A template may omit
            one of its variables only if the rule lets that variable shrink to nothing.

    Raises:
        UsageError: The file is not a prompt, or does not fit the role; the message says where.
    """
    try:
        file = PromptFile.model_validate(raw)
    except ValidationError as fault:
        error = fault.errors(include_url=False)[0]
        where = ".".join(map(str, error["loc"])) or "the file"
        raise UsageError(f"{source}: {where}: {error['msg']}") from fault
    if packaged is not None and file.name != packaged.name:
        raise UsageError(f"{source}: its name is {file.name!r}, and the role's {packaged.name!r}")
    templates = dict(packaged.templates) if packaged else {}
    for name, template in file.templates.items():
        where = f"{source}: template {name!r}"
        if packaged is not None and name not in packaged.templates:
            role_templates = ", ".join(packaged.templates)
            raise UsageError(f"{where} is not a template of the role", remedy=f"one of {role_templates}")
        templates[name] = _check_template(template, where, packaged.templates[name] if packaged else None)
    content = {
        "name": file.name,
        "version": file.version,
        "templates": {
            name: {
                "text": template.text,
                "variables": sorted(template.variables),
                # A list, because the order of the rules matters.
                "shrink": [[part, rule.model_dump()] for part, rule in template.shrink.items()],
            }
            for name, template in templates.items()
        },
    }
    return Prompt(
        name=file.name, version=file.version, templates=templates, hash=content_hash(content), source=source
    )


def _check_template(file: TemplateFile, where: str, packaged: PromptTemplate | None) -> PromptTemplate:
    template = Template(file.text)
    if not template.is_valid():
        raise UsageError(f"{where}: a $ stands alone", remedy="write $$ for a dollar sign")
    used = frozenset(template.get_identifiers())
    if mismatched := sorted(used ^ file.variables):
        raise UsageError(f"{where}: {mismatched} are declared and not used, or used and not declared")
    shrink = file.shrink if file.shrink is not None else packaged.shrink if packaged else {}
    required = packaged.variables if packaged else used
    # A template may omit a variable that can shrink to nothing.
    missing = {name for name in required - used if name not in shrink or shrink[name].least > 0}
    if mismatched := sorted((used - required) | missing):
        raise UsageError(
            f"{where}: its variables must be {sorted(required)}; {mismatched} are unknown or missing"
        )
    if unshrinkable := sorted(shrink.keys() - (packaged.shrink.keys() if packaged else used)):
        raise UsageError(f"{where}: {unshrinkable} cannot shrink")
    return PromptTemplate(text=file.text, variables=required, shrink=shrink)


def prompt_to_dict(prompt: Prompt) -> dict[str, Any]:
    """Return a prompt as the JSON values of its file, with every template written out."""
    templates: dict[str, Any] = {}
    for name, template in prompt.templates.items():
        used = sorted(Template(template.text).get_identifiers())
        templates[name] = {"variables": used, "text": template.text}
        rules = {part: rule.model_dump(exclude_defaults=True) for part, rule in template.shrink.items()}
        if rules:
            templates[name]["shrink"] = {part: rule for part, rule in rules.items() if part in used}
    return {"name": prompt.name, "version": prompt.version, "templates": templates}


def prompt_to_yaml(prompt: Prompt) -> str:
    """Return a prompt as an equivalent YAML file; multi-line strings are written as blocks."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes multi-line strings as blocks."""

    def represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        style = "|" if "\n" in text else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, represent_text)
    values = prompt_to_dict(prompt)
    return str(yaml.dump(values, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1000))


class PromptBook:
    """The prompts of one run; each is read once, when it is first needed.

    A new book reads the files again, so that a change applies from the next run on, and never within a run.

    Args:
        folder: Holds `<role>.yaml` files that replace Suture's own; it need not exist.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._prompts: dict[str, Prompt] = {}

    def load(self, name: str) -> Prompt:
        """Return a role's prompt: the project's own, else Suture's.

        Raises:
            UsageError: There is no such role, or the project's file does not fit it.
        """
        if name not in self._prompts:
            packaged = packaged_prompt(name)
            path = self.folder / f"{name}.yaml" if self.folder else None
            is_replaced = path is not None and path.exists()
            self._prompts[name] = load_prompt(path, name) if path and is_replaced else packaged
        return self._prompts[name]

    def unknown_files(self) -> Iterator[Path]:
        """Yield files in the folder that belong to no role and are never read."""
        if self.folder is not None and self.folder.is_dir():
            roles = {f"{name}.yaml" for name in packaged_prompt_names()}
            yield from (path for path in sorted(self.folder.iterdir()) if path.name not in roles)


def packaged_prompt_names() -> tuple[str, ...]:
    """Return the roles that have a prompt, sorted."""
    folder = files("suture.agents") / "prompts"
    return tuple(sorted(item.name.removesuffix(".yaml") for item in folder.iterdir()))


def packaged_prompt(name: str) -> Prompt:
    """Return Suture's own prompt of a role.

    Raises:
        UsageError: There is no such role.
    """
    import yaml

    names = packaged_prompt_names()
    if name not in names:
        close = get_close_matches(name, names, n=1)
        raise UsageError(
            f"there is no prompt called {name!r}",
            remedy=f"did you mean {close[0]!r}?" if close else f"one of {', '.join(names)}",
        )
    source = files("suture.agents") / "prompts" / f"{name}.yaml"
    return parse_prompt(yaml.safe_load(source.read_text("utf-8")), "packaged")


def load_prompt(path: Path, name: str) -> Prompt:
    """Load a role's prompt from a user's file.

    Raises:
        UsageError: There is no such role; or the file cannot be read, is not YAML, or does not fit the role.
    """
    import yaml

    content = read_text_file(path, MAX_PROMPT_FILE_BYTES, "the prompt")
    try:
        raw = yaml.safe_load(content)
    except (yaml.YAMLError, ValueError, RecursionError) as fault:
        raise UsageError(f"{path}: it is not YAML: {' '.join(str(fault).split())}") from fault
    return parse_prompt(raw, str(path), packaged_prompt(name))

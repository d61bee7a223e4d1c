"""What a project's own files may decide, and which projects their user has looked at and trusts.

A project that nobody has read may bring settings that raise its limits, spend its user's money or send what a
run sees to a server of its author's. So its files decide harmless things alone; for all else the user trusts
the project once, as editors and direnv do. Trust is for one folder and one content of those files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from suture.core.safe_files import read_plain, replace_file
from suture.core.settings.named_files import content_of, files_named
from suture.core.settings.sources import (
    project_layer,
    pyproject_table,
    pyproject_text,
    read_variables,
    settings_text,
)
from suture.errors import StorageError, UsageError

PROMPTS_FOLDER = Path(".suture") / "prompts"
"""Where a project keeps its own prompts, one `<role>.yaml` each."""

HARMLESS: Mapping[str, Literal["any", "at most", "at least", "of ours"]] = {
    "project.test": "any",
    "loop.recipe": "of ours",
    "loop.samples": "any",
    "loop.repair_rounds": "any",
    "repair.enabled": "any",
    "repair.candidates": "at most",
    "repair.seed": "any",
    "proof.mutants": "at least",
    "proof.minimising_runs": "any",
    "ci.confidence": "at least",
    "ci.most_lines": "at most",
    "ci.most_files": "at most",
    "ci.most_heals": "at most",
}
"""What a project's own files may set without trust, and how far against the user's own value. None of it
lifts a limit, spends more than the budget, names a file or a server, or weakens what a result rests on."""

STORE = "trusted.json"
MOST_PROMPTS = 64
MOST_PROMPT_BYTES = 256_000
MOST_STORE_BYTES = 16 * 2**20


@dataclass(frozen=True, kw_only=True)
class RequestedSetting:
    """Something that a project's own files would decide, and that needs trust.

    Attributes:
        key: The setting, or the folder of prompts.
        before: What holds without the project, as text; secrets are masked.
        after: What the project would have.
        origin: Where the project says so.
    """

    key: str
    before: str
    after: str
    origin: str


def is_harmless(key: str, before: Any, after: Any) -> bool:
    """Whether a project may change a setting without trust.

    Args:
        key: The setting's dotted name.
        before: The value without the project.
        after: The value with it.
    """
    bound = HARMLESS.get(key)
    if bound == "at most":
        return bool(after <= before)
    if bound == "at least":
        return bool(after >= before)
    if bound == "of ours":
        return not str(after).endswith(".toml") and "/" not in str(after)
    return bound == "any"


def prompt_files(project: Path) -> dict[str, bytes]:
    """The files of prompts that a project brings, name -> content.

    Raises:
        UsageError: There are too many, or one is too long or cannot be read.
    """
    folder = project / PROMPTS_FOLDER
    found: dict[str, bytes] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.endswith(".yaml"):
                    continue
                content = read_plain(folder / entry.name, MOST_PROMPT_BYTES, follow=True)
                if content is None:
                    continue
                found[entry.name] = content
                if len(found) > MOST_PROMPTS or len(content) > MOST_PROMPT_BYTES:
                    raise UsageError(
                        f"{str(folder)!r} holds more than prompts: a file or their number is too large"
                    )
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as fault:
        raise UsageError(f"{str(folder)!r} cannot be read: {fault.strerror}") from fault
    return found


def digest_of_project(project: Path) -> str:
    """The content of all files with which a project has a say, as one hash.

    Of `.env` only the variables that are ours count: other programs' may change. What these files name is
    part of it: a recipe, prompts, a script of replies.

    Raises:
        UsageError: One of them cannot be read.
    """
    folder = project.absolute()
    variables = read_variables({}, folder)
    layers = variables.own
    with contextlib.suppress(UsageError):  # its text is part of the hash; what is wrong in it, loading says
        layers = (project_layer(folder), *layers)
    ours = {given.origin: str(given.value) for layer in variables.own for given in layer.values()}
    ours |= {given.origin: str(given.value) for given in variables.ancestors.values()}
    content: dict[str, object] = {
        "suture.toml": settings_text(project / "suture.toml"),
        "variables": {origin.rpartition(" ")[2]: value for origin, value in ours.items()},
        "named": {
            str(path): content_of(path, ending) for path, ending in files_named(layers, variables.ancestors)
        },
        "prompts": {name: hashlib.sha256(text).hexdigest() for name, text in prompt_files(project).items()},
    }
    table = _pyproject(folder)
    if table:
        content["pyproject"] = table
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _pyproject(folder: Path) -> object:
    """What its `pyproject.toml` says of us alone: the rest of that file changes often."""
    try:
        return json.loads(json.dumps(pyproject_table(folder), default=str))
    except UsageError:
        return pyproject_text(folder)


def is_trusted(home: Path, project: Path) -> bool:
    """Whether the user trusts a project with its files as they are now.

    Raises:
        StorageError: The list of trusted projects is damaged.
    """
    known = trusted_projects(home).get(str(project.resolve()))
    return known is not None and known == digest_of_project(project)


def project_prompts(home: Path, project: Path) -> Path | None:
    """The folder of a project's own prompts, where it has some and is trusted; raises as `is_trusted`."""
    return project / PROMPTS_FOLDER if prompt_files(project) and is_trusted(home, project) else None


def trusted_projects(home: Path) -> dict[str, str]:
    """The projects that are trusted, folder -> hash of what was looked at.

    Raises:
        StorageError: The list is damaged.
    """
    path = home / STORE
    try:
        content = read_plain(path, MOST_STORE_BYTES, follow=True)
        projects = {} if content is None else json.loads(content)["projects"]
        if not all(isinstance(text, str) for pair in projects.items() for text in pair):
            raise TypeError("a project's hash is a text")
    except OSError as fault:
        raise StorageError(f"{str(path)!r} cannot be read: {fault.strerror}") from fault
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        raise StorageError(
            f"{str(path)!r} is damaged", remedy="remove it, and trust your projects anew"
        ) from fault
    return dict(projects)


def trust_project(home: Path, project: Path, digest: str) -> None:
    """Trust a project with a content of its files.

    Raises:
        StorageError: The list is damaged, or cannot be written.
    """
    _save(home, {**trusted_projects(home), str(project.resolve()): digest})


def revoke_trust(home: Path, project: Path) -> bool:
    """Take trust back, also of a folder that is gone; answers whether there was any.

    Raises:
        StorageError: The list is damaged, or cannot be written.
    """
    projects = trusted_projects(home)
    if projects.pop(str(project.resolve()), None) is None:
        return False
    _save(home, projects)
    return True


def _save(home: Path, projects: Mapping[str, str]) -> None:
    replace_file(home / STORE, json.dumps({"projects": dict(sorted(projects.items()))}, indent=1))

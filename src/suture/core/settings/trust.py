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
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic.fields import FieldInfo

from suture.core.safe_files import read_plain, replace_file
from suture.core.settings.schema import NamesAFile, setting_fields
from suture.core.settings.sources import (
    Given,
    Layer,
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


MODELS_IN_FILES = ("scripted", "huggingface")
"""Providers whose models may be a file or a folder."""
MODEL_VARIABLES = ("LLM_MODEL", "HF_MODEL")
"""Those of older programs whose value may become such a model's name."""
PROMPTS = "paths.prompts"
"""Of the folder that it names, the files of prompts alone are read."""
MOST_BYTES = 16 * 2**20
MOST_FILES = 1000


def is_path(field: FieldInfo) -> bool:
    """Whether a setting is a path and nothing else."""
    return Path in (field.annotation, *typing.get_args(field.annotation))


def kind_of(field: FieldInfo) -> NamesAFile | None:
    """How a setting that is no path may name a file; `None` where it never does."""
    return next((mark for mark in field.metadata if isinstance(mark, NamesAFile)), None)


def files_named(layers: tuple[Layer, ...], ancestors: Mapping[str, Given]) -> Iterator[tuple[Path, str]]:
    """What the settings of a project name, there or not, and how what is read below it ends.

    Args:
        layers: What its own files say.
        ancestors: The variables of older programs in them.
    """
    fields = setting_fields()
    for layer in layers:
        for key, given in layer.items():
            for text in _texts(given.value, fields[key]):
                name = text if is_path(fields[key]) else _file_in(text, kind_of(fields[key]))
                if name:
                    yield given.folder / _expanded(name), ".yaml" if key == PROMPTS else ""
    for variable in MODEL_VARIABLES:
        if variable in ancestors:
            given = ancestors[variable]
            said = str(given.value).strip()
            yield from (
                (given.folder / _expanded(name), "") for name in {said, said.partition(":")[2]} if name
            )


def absolute_names(given: Given, field: FieldInfo, kind: NamesAFile) -> object:
    """The value of a setting, with the files that it names where they lie beside the file that says so.

    A name that a command or the environment gives stays as it is: it is relative to the current folder.
    """
    if given.folder == Path.cwd() or not isinstance(given.value, str | list | tuple):
        return given.value
    texts = [_absolute(text, given.folder, kind) for text in _texts(given.value, field)]
    return texts if _is_list(field) else "".join(texts)


def _absolute(text: str, folder: Path, kind: NamesAFile) -> str:
    name = _file_in(text, kind)
    if not name:
        return text
    path = folder / _expanded(name)
    # A script or a folder of weights may as well be one of ours, or one of the hub's.
    found = kind.kind == "recipe" or path.exists()
    return f"{text[: len(text) - len(name)]}{path}" if found else text


def _texts(value: object, field: FieldInfo) -> list[str]:
    """The texts in a value that nobody has checked; a variable holds a list as one text with commas."""
    if isinstance(value, str):
        return [part for part in map(str.strip, value.split(",")) if part] if _is_list(field) else [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, list | tuple) else []


def _is_list(field: FieldInfo) -> bool:
    return typing.get_origin(field.annotation) is tuple


def _file_in(text: str, kind: NamesAFile | None) -> str:
    """The name of the file in a text; empty where it names none."""
    if kind is None:
        return ""
    if kind.kind == "recipe":
        return text if text.endswith(".toml") else ""
    provider, _, model = text.partition(":")
    return model if provider in MODELS_IN_FILES else ""


def _expanded(name: str) -> str:
    return os.path.expanduser(name)  # noqa: PTH111 - Path's raises where no home is known


def content_of(path: Path, ending: str = "") -> str:
    """What a file or a folder holds, as one hash; empty where there is neither.

    Args:
        path: The file, or the folder.
        ending: Of a folder only files that lie in it and whose names end so; all below it where not given.

    Raises:
        UsageError: It cannot be read, or is too much to be looked at by whoever trusts it.
    """
    hashed = hashlib.sha256()
    left = MOST_BYTES
    found = False
    try:
        for count, (name, file) in enumerate(_files(path, ending)):
            content = read_plain(file, left, follow=True)
            found = found or content is not None
            left -= len(content or b"")
            if left < 0 or count >= MOST_FILES:
                raise UsageError(
                    f"the project's settings name {str(path)!r}, which is too much to be trusted with them",
                    remedy="name it in settings of your own",
                )
            digest = b"-" if content is None else hashlib.sha256(content).hexdigest().encode()
            hashed.update(os.fsencode(name) + b"\0" + digest + b"\0")
    except (OSError, ValueError) as fault:
        why = os.strerror(fault.errno or 0) if isinstance(fault, OSError) else "it is no path"
        raise UsageError(f"{str(path)!r} cannot be read: {why}") from fault
    return hashed.hexdigest() if found else ""


def _files(path: Path, ending: str) -> Iterator[tuple[str, Path]]:
    """A file itself, or the files below a folder, by their names in it.

    Raises:
        OSError: A folder below cannot be listed.
        UsageError: There is a link to a folder.
    """
    if not path.is_dir():
        yield "", path
        return
    waiting = [path]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                if ending:
                    if entry.name.endswith(ending):
                        yield entry.name, Path(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
                elif not entry.is_dir():
                    yield str(Path(entry.path).relative_to(path)), Path(entry.path)
                else:
                    raise UsageError(f"{entry.path!r} is a link to a folder, which is not looked into")

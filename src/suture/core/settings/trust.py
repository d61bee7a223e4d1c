"""Decide what a project's own files may set, and remember which projects the user trusts.

The settings of a stranger's project could raise limits, spend the user's money, or send what a run sees to a
server of their author. A project may therefore set only harmless values, until the user trusts it, as with
editors and direnv.

Trust is given to one folder, as long as its digest stays the same. The digest covers the project's settings
files and the files that those settings name, which influence a run as much as the settings do.
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

from suture.core.safe_files import read_regular_file, write_text_atomically
from suture.core.settings.rendering import setting_fields
from suture.core.settings.setting_sources import (
    Layer,
    SettingValue,
    project_layer,
    pyproject_table,
    pyproject_text,
    read_settings_text,
    read_variables,
)
from suture.core.settings.setting_types import FileReference
from suture.core.tuning import (
    MAX_PROMPT_BYTES,
    MAX_PROMPT_FILES,
    MAX_REFERENCED_BYTES,
    MAX_REFERENCED_FILES,
    MAX_TRUST_FILE_BYTES,
)
from suture.errors import StorageError, UsageError

PROMPTS_FOLDER = Path(".suture") / "prompts"
"""Where a project keeps its own prompts, one `<role>.yaml` for each role."""

HARMLESS: Mapping[str, Literal["any", "at most", "at least", "built-in"]] = {
    "project.test": "any",
    "project.services": "any",
    "loop.recipe": "built-in",
    "loop.samples": "any",
    "loop.repair_rounds": "any",
    "repair.enabled": "any",
    "repair.candidates": "at most",
    "repair.seed": "any",
    "certification.mutants": "at least",
    "certification.minimising_runs": "any",
    "ci.confidence": "at least",
    "ci.max_lines": "at most",
    "ci.max_files": "at most",
    "ci.max_heals": "at most",
}
"""Settings that a project's own files may change without trust -> how the value must compare with the user's own.

None of these raises a limit, spends more than the budget, names a file or a server, or weakens the evidence
for a result."""

TRUST_FILE = "trusted.json"

PROVIDERS_WITH_FILES = ("scripted", "huggingface")
"""Providers whose models may be a file or a folder."""
ALIASES_WITH_FILES = ("LLM_MODEL", "HF_MODEL")
"""Variables of the ancestors whose value may name a model that is a file or a folder."""
PROMPTS_SETTING = "paths.prompts"
"""The setting that names a folder of which only the prompts are read."""


@dataclass(frozen=True, kw_only=True)
class RequestedSetting:
    """A setting that a project's own files would set, and that needs the user's trust.

    Attributes:
        key: Dotted name of the setting; for the project's own prompts, their folder.
        before: The value without the project, as text. Secrets are masked.
        origin: The file, or the variable in a file, that sets it.
    """

    key: str
    before: str
    after: str
    origin: str


def is_harmless(key: str, before: Any, after: Any) -> bool:
    """Return whether a project may change a setting without trust."""
    bound = HARMLESS.get(key)
    if bound == "at most":
        return bool(after <= before)
    if bound == "at least":
        return bool(after >= before)
    if bound == "built-in":
        return not str(after).endswith(".toml") and "/" not in str(after)
    return bound == "any"


def prompt_files(project: Path) -> dict[str, bytes]:
    """Return a project's own prompts, file name -> content.

    Raises:
        UsageError: There are too many prompts, or one is too long or cannot be read.
    """
    folder = project / PROMPTS_FOLDER
    prompts: dict[str, bytes] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.endswith(".yaml"):
                    continue
                content = read_regular_file(folder / entry.name, MAX_PROMPT_BYTES, follow=True)
                if content is None:
                    continue
                prompts[entry.name] = content
                if len(prompts) > MAX_PROMPT_FILES or len(content) > MAX_PROMPT_BYTES:
                    raise UsageError(
                        f"{str(folder)!r} holds more than prompts: a file or their number is too large"
                    )
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as fault:
        raise UsageError(f"{str(folder)!r} cannot be read: {fault.strerror}") from fault
    return prompts


def compute_project_digest(project: Path) -> str:
    """Return a hash of everything by which a project's files influence its runs.

    This covers the project's settings files, its prompts, the files that its settings name (a recipe,
    prompts, a script of replies), and the variables in its `.env` that Suture uses. Variables of other
    programs may change without a new decision of the user.

    Raises:
        UsageError: One of these files cannot be read.
    """
    folder = project.absolute()
    variables = read_variables({}, folder)
    layers = variables.suture_layers
    # The content of an invalid file is hashed anyway; loading the settings reports what is wrong.
    with contextlib.suppress(UsageError):
        layers = (project_layer(folder), *layers)
    values = [value for layer in variables.suture_layers for value in layer.values()]
    values += variables.ancestors.values()
    content: dict[str, object] = {
        "suture.toml": read_settings_text(project / "suture.toml"),
        "variables": {value.origin.rpartition(" ")[2]: str(value.value) for value in values},
        "named": {
            str(path): hash_file_or_folder(path, suffix)
            for path, suffix in find_referenced_files(layers, variables.ancestors)
        },
        "prompts": {name: hashlib.sha256(text).hexdigest() for name, text in prompt_files(project).items()},
    }
    table = _pyproject_content(folder)
    if table:
        content["pyproject"] = table
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _pyproject_content(folder: Path) -> object:
    """Return Suture's table in `pyproject.toml`. The rest of that file changes often and is not hashed."""
    try:
        return json.loads(json.dumps(pyproject_table(folder), default=str))
    except UsageError:
        return pyproject_text(folder)


def is_trusted(home: Path, project: Path) -> bool:
    """Return whether the user trusts a project with its files as they are now.

    Raises:
        StorageError: The list of trusted projects is damaged.
    """
    digest = trusted_projects(home).get(str(project.resolve()))
    return digest is not None and digest == compute_project_digest(project)


def project_prompts(home: Path, project: Path) -> Path | None:
    """Return the folder of a project's own prompts if it has some and is trusted. Raises as `is_trusted`."""
    return project / PROMPTS_FOLDER if prompt_files(project) and is_trusted(home, project) else None


def trusted_projects(home: Path) -> dict[str, str]:
    """Return the trusted projects, folder -> digest of the content that the user has seen.

    Raises:
        StorageError: The list is damaged.
    """
    path = home / TRUST_FILE
    try:
        content = read_regular_file(path, MAX_TRUST_FILE_BYTES, follow=True)
        projects = {} if content is None else json.loads(content)["projects"]
        if not all(isinstance(digest, str) for digest in projects.values()):  # JSON keys are always strings
            raise TypeError("the digest of a project is a text")
    except OSError as fault:
        raise StorageError(f"{str(path)!r} cannot be read: {fault.strerror}") from fault
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        raise StorageError(
            f"{str(path)!r} is damaged", remedy="remove it, and trust your projects again"
        ) from fault
    return dict(projects)


def trust_project(home: Path, project: Path, digest: str) -> None:
    """Trust a project as long as its files have this digest.

    Raises:
        StorageError: The list is damaged, or cannot be written.
    """
    _save(home, {**trusted_projects(home), str(project.resolve()): digest})


def revoke_trust(home: Path, project: Path) -> bool:
    """Stop trusting a project, whose folder may be gone, and return whether it was trusted.

    Raises:
        StorageError: The list is damaged, or cannot be written.
    """
    projects = trusted_projects(home)
    if projects.pop(str(project.resolve()), None) is None:
        return False
    _save(home, projects)
    return True


def _save(home: Path, projects: Mapping[str, str]) -> None:
    write_text_atomically(
        home / TRUST_FILE, json.dumps({"projects": dict(sorted(projects.items()))}, indent=1)
    )


def is_path(field: FieldInfo) -> bool:
    """Return whether a setting is a path and nothing else."""
    return Path in (field.annotation, *typing.get_args(field.annotation))


def file_reference_in(field: FieldInfo) -> FileReference | None:
    """Return how a string setting can name a file, or `None` if it never does."""
    return next((mark for mark in field.metadata if isinstance(mark, FileReference)), None)


def find_referenced_files(
    layers: tuple[Layer, ...], ancestors: Mapping[str, SettingValue]
) -> Iterator[tuple[Path, str]]:
    """Yield (file or folder that a project's settings name, suffix) of each, whether it exists or not.

    Of a folder, Suture reads only the files with the suffix, or all files if the suffix is empty.

    Args:
        layers: The settings that the project's own files set.
        ancestors: The ancestors' variables in the project's `.env`.
    """
    all_fields = setting_fields()
    for layer in layers:
        for key, value in layer.items():
            field = all_fields[key]
            for text in _texts_in(value.value, field):
                name = text if is_path(field) else _referenced_name(text, file_reference_in(field))
                if name:
                    yield value.folder / _expand_user(name), ".yaml" if key == PROMPTS_SETTING else ""
    for variable in ALIASES_WITH_FILES:
        if variable in ancestors:
            value = ancestors[variable]
            model = str(value.value).strip()
            for name in {model, model.partition(":")[2]}:  # with or without `provider:`
                if name:
                    yield value.folder / _expand_user(name), ""


def make_references_absolute(value: SettingValue, field: FieldInfo, reference: FileReference) -> object:
    """Return the value of a setting in which the names of files are absolute.

    A name from the command line or the environment stays as it is: it is relative to the current folder.
    """
    if value.folder == Path.cwd() or not isinstance(value.value, str | list | tuple):
        return value.value
    texts = [_make_absolute(text, value.folder, reference) for text in _texts_in(value.value, field)]
    return texts if _is_list(field) else "".join(texts)


def _make_absolute(text: str, folder: Path, reference: FileReference) -> str:
    name = _referenced_name(text, reference)
    if not name:
        return text
    path = folder / _expand_user(name)
    # What looks like a file may be the name of a built-in script, or of a model on the Hugging Face hub.
    is_file = reference.kind == "recipe" or path.exists()
    return f"{text[: len(text) - len(name)]}{path}" if is_file else text


def _texts_in(value: object, field: FieldInfo) -> list[str]:
    """Return the strings in the value of a setting, before its validation.

    An environment variable holds a list as one comma-separated string.
    """
    if isinstance(value, str):
        return [part for part in map(str.strip, value.split(",")) if part] if _is_list(field) else [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list | tuple) else []


def _is_list(field: FieldInfo) -> bool:
    return typing.get_origin(field.annotation) is tuple


def _referenced_name(text: str, reference: FileReference | None) -> str:
    """Return the name of the file in the value of a setting; empty if it names none."""
    if reference is None:
        return ""
    if reference.kind == "recipe":
        return text if text.endswith(".toml") else ""
    provider, _, model = text.partition(":")
    return model if provider in PROVIDERS_WITH_FILES else ""


def _expand_user(name: str) -> str:
    # `Path.expanduser` raises an error if no home folder is known.
    return os.path.expanduser(name)  # noqa: PTH111


def hash_file_or_folder(path: Path, suffix: str = "") -> str:
    """Return a hash of a file's content, or of all files in a folder; empty if there is neither.

    Args:
        suffix: If given, only the files directly in the folder whose names have this suffix count. By
            default, all files below the folder count.

    Raises:
        UsageError: It cannot be read, or is too large to be reviewed by a person.
    """
    hasher = hashlib.sha256()
    remaining_bytes = MAX_REFERENCED_BYTES
    exists = False
    try:
        for count, (name, file) in enumerate(_files_in(path, suffix)):
            content = read_regular_file(file, remaining_bytes, follow=True)
            exists = exists or content is not None
            remaining_bytes -= len(content or b"")
            if remaining_bytes < 0 or count >= MAX_REFERENCED_FILES:
                raise UsageError(
                    f"the project's settings name {str(path)!r}, which is too large to be trusted with them",
                    remedy="name it in settings of your own",
                )
            digest = b"-" if content is None else hashlib.sha256(content).hexdigest().encode()
            hasher.update(os.fsencode(name) + b"\0" + digest + b"\0")
    except (OSError, ValueError) as fault:
        why = os.strerror(fault.errno or 0) if isinstance(fault, OSError) else "it is not a path"
        raise UsageError(f"{str(path)!r} cannot be read: {why}") from fault
    return hasher.hexdigest() if exists else ""


def _files_in(path: Path, suffix: str) -> Iterator[tuple[str, Path]]:
    """Yield (name, path) of each file below a folder, the name relative to it; for a file, the file itself.

    Raises:
        OSError: A folder below cannot be listed.
        UsageError: There is a link to a folder.
    """
    if not path.is_dir():
        yield "", path
        return
    folders = [path]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if suffix:
                    if entry.name.endswith(suffix):
                        yield entry.name, Path(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                elif not entry.is_dir():
                    yield str(Path(entry.path).relative_to(path)), Path(entry.path)
                else:
                    raise UsageError(f"{entry.path!r} is a link to a folder, which is not followed")

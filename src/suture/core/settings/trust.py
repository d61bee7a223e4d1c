"""Decide what a project's own files may set, and remember which projects the user trusts.

A project that nobody has read may raise limits, spend its user's money, or send what a run sees to a server
of its author. Its files may therefore set only harmless values. For anything else the user trusts the
project once, as with editors and direnv. Trust covers one folder, one content of the project's settings
files, and one content of the files that those settings name: they influence a run as much as the settings
do.
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

from suture.core.safe_files import read_regular_file, replace_file
from suture.core.settings.schema import FileReference, setting_fields
from suture.core.settings.sources import (
    Layer,
    SettingValue,
    project_layer,
    pyproject_table,
    pyproject_text,
    read_settings_text,
    read_variables,
)
from suture.core.tuning import (
    MAX_PROMPT_BYTES,
    MAX_PROMPT_FILES,
    MAX_REFERENCED_BYTES,
    MAX_REFERENCED_FILES,
    MAX_TRUST_FILE_BYTES,
)
from suture.errors import StorageError, UsageError

PROMPTS_FOLDER = Path(".suture") / "prompts"
"""Where a project keeps prompts of its own, one `<role>.yaml` for each role."""

HARMLESS: Mapping[str, Literal["any", "at most", "at least", "built-in"]] = {
    "project.test": "any",
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
"""What a project's own files may set without trust, and how the value must compare with the user's own.

None of these raises a limit, spends more than the budget, names a file or a server, or weakens the evidence
for a result. """

TRUST_FILE = "trusted.json"

PROVIDERS_WITH_FILES = ("scripted", "huggingface")
"""Providers whose models may be a file or a folder."""
ALIASES_WITH_FILES = ("LLM_MODEL", "HF_MODEL")
"""The ancestors' variables whose value may become the name of such a model."""
PROMPTS_SETTING = "paths.prompts"
"""The setting that names a folder of which only the prompts are read."""


@dataclass(frozen=True, kw_only=True)
class RequestedSetting:
    """Something that a project's own files would set, and that needs trust.

    Attributes:
        key: The setting, or the folder of prompts.
        before: The value without the project, as text; secrets are masked.
        after: The value that the project would set.
        origin: The file in which the project sets it.
    """

    key: str
    before: str
    after: str
    origin: str


def is_harmless(key: str, before: Any, after: Any) -> bool:
    """Return whether a project may change a setting without trust.

    Args:
        key: The dotted name of the setting.
        before: The value without the project.
        after: The value with it.
    """
    bound = HARMLESS.get(key)
    if bound == "at most":
        return bool(after <= before)
    if bound == "at least":
        return bool(after >= before)
    if bound == "built-in":
        return not str(after).endswith(".toml") and "/" not in str(after)
    return bound == "any"


def prompt_files(project: Path) -> dict[str, bytes]:
    """Return the prompts of a project's own, file name -> content.

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
                content = read_regular_file(folder / entry.name, MAX_PROMPT_BYTES, follow=True)
                if content is None:
                    continue
                found[entry.name] = content
                if len(found) > MAX_PROMPT_FILES or len(content) > MAX_PROMPT_BYTES:
                    raise UsageError(
                        f"{str(folder)!r} holds more than prompts: a file or their number is too large"
                    )
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as fault:
        raise UsageError(f"{str(folder)!r} cannot be read: {fault.strerror}") from fault
    return found


def compute_project_digest(project: Path) -> str:
    """Return a hash of everything by which a project influences its runs.

    This covers the project's settings files, the variables in `.env` that Suture uses (other programs'
    variables may change), its prompts, and the files that its settings name: a recipe, prompts, a script of
    replies.

    Raises:
        UsageError: One of these files cannot be read.
    """
    folder = project.absolute()
    variables = read_variables({}, folder)
    layers = variables.own
    with contextlib.suppress(
        UsageError
    ):  # the text is hashed in any case; loading reports what is wrong in it
        layers = (project_layer(folder), *layers)
    values = {given.origin: str(given.value) for layer in variables.own for given in layer.values()}
    values |= {given.origin: str(given.value) for given in variables.ancestors.values()}
    content: dict[str, object] = {
        "suture.toml": read_settings_text(project / "suture.toml"),
        "variables": {origin.rpartition(" ")[2]: value for origin, value in values.items()},
        "named": {
            str(path): hash_file_or_folder(path, ending)
            for path, ending in find_referenced_files(layers, variables.ancestors)
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
        if not all(isinstance(text, str) for pair in projects.items() for text in pair):
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
    replace_file(home / TRUST_FILE, json.dumps({"projects": dict(sorted(projects.items()))}, indent=1))


def is_path(field: FieldInfo) -> bool:
    """Return whether a setting is a path and nothing else."""
    return Path in (field.annotation, *typing.get_args(field.annotation))


def file_reference_in(field: FieldInfo) -> FileReference | None:
    """Return how a text setting can name a file, or `None` if it never does."""
    return next((mark for mark in field.metadata if isinstance(mark, FileReference)), None)


def find_referenced_files(
    layers: tuple[Layer, ...], ancestors: Mapping[str, SettingValue]
) -> Iterator[tuple[Path, str]]:
    """Yield the files and folders that a project's settings name, whether they exist or not.

    Each comes with an ending: of a folder, only files that end so are read; all of them if it is empty.

    Args:
        layers: What the project's own files set.
        ancestors: The ancestors' variables in them.
    """
    all_fields = setting_fields()
    for layer in layers:
        for key, given in layer.items():
            field = all_fields[key]
            for text in _texts_in(given.value, field):
                name = text if is_path(field) else _referenced_name(text, file_reference_in(field))
                if name:
                    yield given.folder / _expand_user(name), ".yaml" if key == PROMPTS_SETTING else ""
    for variable in ALIASES_WITH_FILES:
        if variable in ancestors:
            given = ancestors[variable]
            value = str(given.value).strip()
            for name in {value, value.partition(":")[2]}:
                if name:
                    yield given.folder / _expand_user(name), ""


def make_references_absolute(given: SettingValue, field: FieldInfo, reference: FileReference) -> object:
    """Return the value of a setting in which file names are relative to the folder of their source.

    A name from the command line or the environment stays as it is: it is relative to the current folder.
    """
    if given.folder == Path.cwd() or not isinstance(given.value, str | list | tuple):
        return given.value
    texts = [_make_absolute(text, given.folder, reference) for text in _texts_in(given.value, field)]
    return texts if _is_list(field) else "".join(texts)


def _make_absolute(text: str, folder: Path, reference: FileReference) -> str:
    name = _referenced_name(text, reference)
    if not name:
        return text
    path = folder / _expand_user(name)
    # The name of a script or of a folder of weights may also be a built-in one, or one of the hub.
    is_file = reference.kind == "recipe" or path.exists()
    return f"{text[: len(text) - len(name)]}{path}" if is_file else text


def _texts_in(value: object, field: FieldInfo) -> list[str]:
    """Return the texts in a value that is not validated; a variable holds a list as one text with commas."""
    if isinstance(value, str):
        return [part for part in map(str.strip, value.split(",")) if part] if _is_list(field) else [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, list | tuple) else []


def _is_list(field: FieldInfo) -> bool:
    return typing.get_origin(field.annotation) is tuple


def _referenced_name(text: str, reference: FileReference | None) -> str:
    """Return the name of the file in a text; empty if the text names none."""
    if reference is None:
        return ""
    if reference.kind == "recipe":
        return text if text.endswith(".toml") else ""
    provider, _, model = text.partition(":")
    return model if provider in PROVIDERS_WITH_FILES else ""


def _expand_user(name: str) -> str:
    # `Path.expanduser` raises an error if no home folder is known.
    return os.path.expanduser(name)  # noqa: PTH111


def hash_file_or_folder(path: Path, ending: str = "") -> str:
    """Return a hash of a file's content or of all files in a folder; empty if there is neither.

    Args:
        path: The file, or the folder.
        ending: For a folder, hash only the files directly in it whose names end so.

    Raises:
        UsageError: It cannot be read, or is too large to be reviewed by a person.
    """
    hashed = hashlib.sha256()
    left_bytes = MAX_REFERENCED_BYTES
    exists = False
    try:
        for count, (name, file) in enumerate(_files_in(path, ending)):
            content = read_regular_file(file, left_bytes, follow=True)
            exists = exists or content is not None
            left_bytes -= len(content or b"")
            if left_bytes < 0 or count >= MAX_REFERENCED_FILES:
                raise UsageError(
                    f"the project's settings name {str(path)!r}, which is too large to be trusted with them",
                    remedy="name it in settings of your own",
                )
            digest = b"-" if content is None else hashlib.sha256(content).hexdigest().encode()
            hashed.update(os.fsencode(name) + b"\0" + digest + b"\0")
    except (OSError, ValueError) as fault:
        why = os.strerror(fault.errno or 0) if isinstance(fault, OSError) else "it is not a path"
        raise UsageError(f"{str(path)!r} cannot be read: {why}") from fault
    return hashed.hexdigest() if exists else ""


def _files_in(path: Path, ending: str) -> Iterator[tuple[str, Path]]:
    """Yield a file itself, or the files below a folder with their names relative to it.

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
            for entry in sorted(entries, key=lambda one: one.name):
                if ending:
                    if entry.name.endswith(ending):
                        yield entry.name, Path(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                elif not entry.is_dir():
                    yield str(Path(entry.path).relative_to(path)), Path(entry.path)
                else:
                    raise UsageError(f"{entry.path!r} is a link to a folder, which is not followed")

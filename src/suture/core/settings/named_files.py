"""Which files the settings of a project name: they steer its runs as much as the settings do.

A recipe, a script of replies, a folder of prompts or of weights is looked for below the folder of the file
that names it, whatever folder a command was started in.
"""

from __future__ import annotations

import hashlib
import os
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic.fields import FieldInfo

from suture.core.safe_files import read_plain
from suture.core.settings.groups import NamesAFile
from suture.core.settings.schema import setting_fields
from suture.core.settings.sources import Given, Layer
from suture.errors import UsageError

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

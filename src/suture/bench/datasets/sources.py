"""Where a set is looked for: a package that ships it, a local file, the Hugging Face hub; in this order."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suture.errors import PrerequisiteError, UsageError

DATA_VARIABLE = "SUTURE_DATA"
UNREADABLE = (OSError, EOFError, UnicodeDecodeError, zlib.error)
"""What a file raises that is not what its name says, or that is damaged."""


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where a set is looked for.

    Attributes:
        files: Its files below `$SUTURE_DATA`, the first that is there; JSON lines or a JSON list, `.gz` or
            plain.
        package: A package that ships it: its name, the module's name, and the file (or the folder of JSON
            files) in that module.
        hub: A data set of the Hugging Face hub, and the glob of its files: JSON lines or Parquet.
    """

    files: tuple[str, ...]
    package: tuple[str, str, str] | None = None
    hub: tuple[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A record of a set, and where it stands.

    Attributes:
        place: In words: which record of which file.
        record: As it was read.
    """

    place: str
    record: Any


def records_of(name: str, places: Places) -> Iterator[Stored]:
    """The records of a set, from the first place that has it.

    Raises:
        PrerequisiteError: It is in none of them.
        UsageError: A file is not what it should be.
    """
    found = _in_package(places) or _in_folder(places) or _on_hub(name, places)
    for path in found:
        try:
            for number, record in enumerate(_read(path), 1):
                yield Stored(place=f"record {number} of {str(path)!r}", record=record)
        except UNREADABLE as fault:
            raise UsageError(
                f"{str(path)!r} cannot be read: {fault}", remedy="put the set's own file there"
            ) from fault


def _in_package(places: Places) -> list[Path]:
    if places.package is None:
        return []
    _, module, inside = places.package
    spec = importlib.util.find_spec(module)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / inside
        if path.exists():
            return sorted(path.glob("*.json")) if path.is_dir() else [path]
    return []


def _in_folder(places: Places) -> list[Path]:
    data = os.environ.get(DATA_VARIABLE)
    paths = [Path(data) / file for file in places.files] if data else []
    return [path for path in paths if path.is_file()][:1]


def _on_hub(name: str, places: Places) -> Sequence[Path]:
    ways = [f"set {DATA_VARIABLE} to a folder that holds {places.files[0]}"]
    if places.package is not None:
        ways.insert(0, f"install {places.package[0]}")
    why = ""
    if places.hub is not None:
        ways.append("install suture[hub], and be online")
        try:
            return _fetched(*places.hub)
        except (
            ImportError,
            OSError,
            ValueError,
        ) as fault:  # not installed; not reached; refused or malformed
            why = f", and the hub did not give it: {fault}"
    raise PrerequisiteError(f"the set {name!r} is not on this machine{why}", remedy=", or ".join(ways))


def _fetched(repository: str, files: str) -> Sequence[Path]:
    from huggingface_hub import snapshot_download

    folder = Path(snapshot_download(repository, repo_type="dataset", allow_patterns=[files]))
    paths = sorted(folder.glob(files))
    if not paths:
        raise ValueError(f"{repository} has no file {files!r}")
    return paths


def _read(path: Path) -> Iterator[Any]:
    if path.suffix == ".parquet":
        yield from _read_parquet(path)
        return
    with (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8") as file
    ):
        if path.suffix == ".json":
            whole = _parsed(file.read(), path, 1)
            yield from whole if isinstance(whole, list) else [whole]
            return
        for number, line in enumerate(file, 1):
            yield _parsed(line, path, number)


def _parsed(text: str, path: Path, line: int) -> Any:
    try:
        return json.loads(text)
    except ValueError as fault:
        raise UsageError(f"line {line} of {str(path)!r} is no JSON: {fault}") from fault


def _read_parquet(path: Path) -> Iterator[Any]:
    try:
        from pyarrow.parquet import read_table
    except ImportError as fault:
        raise PrerequisiteError(f"{str(path)!r} is a Parquet file", remedy="install suture[hub]") from fault
    try:
        table = read_table(path)
    except ValueError as fault:  # what pyarrow says of a file that is no Parquet
        raise UsageError(f"{str(path)!r} is no Parquet file: {fault}") from fault
    yield from table.to_pylist()

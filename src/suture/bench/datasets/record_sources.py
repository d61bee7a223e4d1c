"""Find the records of a data set: in a package that ships it, a local file, or the Hugging Face hub."""

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
"""The environment variable with the folder of local data sets."""
UNREADABLE = (OSError, EOFError, UnicodeDecodeError, zlib.error)
"""What reading a file raises if the file is damaged or its format does not match its name."""


@dataclass(frozen=True, kw_only=True)
class RecordPlaces:
    """Where a data set is searched for.

    Attributes:
        files: File names below `$SUTURE_DATA`, of which the first existing one counts; JSON lines or a JSON
            list, plain or `.gz`.
        package: (package, module, path) of a package that ships the data set. The path is in the module, and
            is that of a file or of a folder of JSON files.
        hub: (data set, glob) on the Hugging Face hub; the files are JSON lines or Parquet.
    """

    files: tuple[str, ...]
    package: tuple[str, str, str] | None = None
    hub: tuple[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class StoredRecord:
    """A record of a data set and its position."""

    place: str
    record: Any


def load_records(name: str, places: RecordPlaces) -> Iterator[StoredRecord]:
    """Yield the records of a data set from the first place that has it."""
    for path in _find_in_package(places) or _find_in_folder(places) or _download_from_hub(name, places):
        try:
            for number, record in enumerate(_read_records(path), 1):
                yield StoredRecord(place=f"record {number} of {str(path)!r}", record=record)
        except UNREADABLE as fault:
            raise UsageError(
                f"{str(path)!r} cannot be read: {fault}", remedy="put the set's own file there"
            ) from fault


def _find_in_package(places: RecordPlaces) -> list[Path]:
    if places.package is None:
        return []
    _, module, relative_path = places.package
    spec = importlib.util.find_spec(module)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / relative_path
        if path.exists():
            return sorted(path.glob("*.json")) if path.is_dir() else [path]
    return []


def _find_in_folder(places: RecordPlaces) -> list[Path]:
    data = os.environ.get(DATA_VARIABLE)
    paths = [Path(data) / file for file in places.files] if data else []
    return [path for path in paths if path.is_file()][:1]


def _download_from_hub(name: str, places: RecordPlaces) -> Sequence[Path]:
    """Return the files from the hub; raise `PrerequisiteError` with every way to get the data set."""
    remedies = [f"set {DATA_VARIABLE} to a folder that holds {places.files[0]}"]
    if places.package is not None:
        remedies.insert(0, f"install {places.package[0]}")
    reason = ""
    if places.hub is not None:
        remedies.append("install suture[hub], and be online")
        try:
            return _download(*places.hub)
        except (ImportError, OSError, ValueError) as fault:  # not installed, unreachable, refused, malformed
            reason = f", and the hub could not provide it: {fault}"
    message = f"the data set {name!r} is not on this machine{reason}"
    raise PrerequisiteError(message, remedy=", or ".join(remedies))


def _download(repository: str, files: str) -> Sequence[Path]:
    from huggingface_hub import snapshot_download

    folder = Path(snapshot_download(repository, repo_type="dataset", allow_patterns=[files]))
    paths = sorted(folder.glob(files))
    if not paths:
        raise ValueError(f"{repository} has no file {files!r}")
    return paths


def _read_records(path: Path) -> Iterator[Any]:
    if path.suffix == ".parquet":
        yield from _read_parquet(path)
        return
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        if path.suffix == ".json":
            records = _parse_json(file.read(), path, 1)
            yield from records if isinstance(records, list) else [records]
            return
        for number, line in enumerate(file, 1):
            yield _parse_json(line, path, number)


def _parse_json(text: str, path: Path, line: int) -> Any:
    try:
        return json.loads(text)
    except ValueError as fault:
        raise UsageError(f"line {line} of {str(path)!r} is not valid JSON: {fault}") from fault


def _read_parquet(path: Path) -> Iterator[Any]:
    try:
        from pyarrow.parquet import read_table
    except ImportError as fault:
        raise PrerequisiteError(f"{str(path)!r} is a Parquet file", remedy="install suture[hub]") from fault
    try:
        table = read_table(path)
    except ValueError as fault:  # pyarrow raises this for any other file format
        raise UsageError(f"{str(path)!r} is not a Parquet file: {fault}") from fault
    yield from table.to_pylist()

"""Find the records of a data set: in a package that ships it, a local file, or the Hugging Face hub.

Turn a record of a data set into a problem.

Two formats are read: the published format of the set, and a common one (`id`, `prompt`, `reference`, `buggy`,
`visible_tests`, `hidden_tests`) for local collections.
"""

from __future__ import annotations

import ast
import gzip
import importlib.util
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suture.bench.problem import Problem, ProblemFactory
from suture.core.installation import format_install_command
from suture.errors import PrerequisiteError, UsageError
from suture.project.python_source.parsing import parse_module

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
        remedies.append(f"be online, with {format_install_command('hub')}")
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
        raise PrerequisiteError(
            f"{str(path)!r} is a Parquet file", remedy=format_install_command("hub")
        ) from fault
    try:
        table = read_table(path)
    except ValueError as fault:  # pyarrow raises this for any other file format
        raise UsageError(f"{str(path)!r} is not a Parquet file: {fault}") from fault
    yield from table.to_pylist()


Record = Mapping[str, Any]
Adapter = Callable[[Any, ProblemFactory], Problem | None]
"""Turns a record into a problem, or into `None` if the record cannot be judged as data."""


def adapt_humaneval(record: Record, make: ProblemFactory) -> Problem:
    """Return a HumanEval problem. The examples in the docstring are visible."""
    if "task_id" not in record:
        return _common(record, make, statement=record["prompt"])
    prompt, name = record["prompt"], record["entry_point"]
    return make(
        id=record["task_id"],
        kind="write",
        statement=prompt,
        entry_point=name,
        hidden=f"{record['test']}\n\ncheck({name})\n",
        reference=prompt + record["canonical_solution"],
    )


def adapt_mbpp(record: Record, make: ProblemFactory) -> Problem:
    """Return an MBPP problem. The first test is visible: it is in the statement, and it is graded too."""
    if "test_list" not in record:
        return _common(record, make, statement=record["prompt"], visible=record["visible_tests"])
    imports = list(record.get("test_imports", ()))
    first_test, *_ = record["test_list"]
    return make(
        id=f"MBPP/{record['task_id']}",
        kind="write",
        statement=f"{record['prompt']}\n{first_test}",
        entry_point=_tested_function(record["code"], first_test),
        visible="\n".join([*imports, first_test]),
        hidden="\n".join([*imports, *record["test_list"]]),
        reference=record["code"],
    )


def adapt_quixbugs(record: Record, make: ProblemFactory) -> Problem:
    """Return a QuixBugs problem: a program with a one-line bug and the failing tests a user would have."""
    # A user of such a program has all of its tests, so none is hidden.
    return _common(record, make, kind="heal", given=record["buggy"], visible=record["hidden_tests"])


def adapt_humanevalfix(record: Record, make: ProblemFactory) -> Problem:
    """Return a HumanEvalFix problem with docstrings: a HumanEval function with a planted bug.

    The example tests of one record are not valid Python; the examples in its statement are visible instead.
    """
    is_published_format = "buggy_solution" in record
    visible = record["example_test" if is_published_format else "visible_tests"]
    visible = visible if parse_module(visible) else ""
    if not is_published_format:
        return _common(record, make, kind="heal", given=record["buggy"], visible=visible)
    return make(
        id=record["task_id"],
        kind="heal",
        statement=record["prompt"],
        entry_point=record["entry_point"],
        given=record["prompt"] + record["buggy_solution"],
        visible=visible,
        hidden=record["test"],
        reference=record["prompt"] + record["canonical_solution"],
    )


def _common(
    record: Record,
    make: ProblemFactory,
    *,
    kind: str = "write",
    statement: str = "",
    given: str = "",
    visible: str = "",
) -> Problem:
    """Return the problem of a record in the common format (see the module's docstring)."""
    return make(
        id=record["id"],
        kind=kind,
        statement=statement or record["instruction"],
        entry_point=record["entry_point"],
        given=given,
        visible=visible,
        hidden=record["hidden_tests"],
        reference=record["reference"],
    )


def _tested_function(code: str, test: str) -> str:
    """Return the function that the code defines and a test calls; the last function if there is none."""
    called = {node.id for node in ast.walk(ast.parse(test)) if isinstance(node, ast.Name)}
    defined = [node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    return next((name for name in reversed(defined) if name in called), defined[-1])

"""Replies that were recorded before, to answer from in place of a model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from suture.core.records import from_plain
from suture.core.safe_files import read_stored
from suture.errors import ModelError, StorageError, UsageError
from suture.models.recording.call_hash import call_hash
from suture.models.seam import Message, RefusingModel, Reply, Sampling

T = TypeVar("T")
MOST_BYTES, MOST_REPLY_BYTES = 2**30, 64 * 2**20
"""Of a file of replies, and of one reply with its prompt; those of a benchmark have a tenth of it."""


@dataclass(frozen=True, kw_only=True)
class ReplySource:
    """Recorded replies by the hash of their call.

    Attributes:
        name: Where they come from, for people: a run's id, or a file's name.
        models: Who gave them, as `provider:model`.
    """

    name: str
    models: frozenset[str]
    entries: Mapping[str, Mapping[str, Any]]

    def find(self, key: str) -> Reply | None:
        """The reply to a call, or `None`.

        Raises:
            ModelError: The model failed when it was asked then.
            StorageError: The entry is damaged.
        """
        entry = self.entries.get(key)
        if entry is None:
            return None
        if "reply" not in entry:
            _raise_again(entry.get("fault", {}))
        return replace(reply_of_record(entry["reply"]), replayed=True, from_run=self.name)


class ReplyMissing(UsageError):
    """A replay came to a call that was never recorded.

    Args:
        source: Where it was looked for.
        model: The model that was to be asked, `provider:model`.
        sampling: Temperature, limits and index of the sample that was asked for.
    """

    def __init__(self, source: ReplySource, model: str, sampling: Sampling) -> None:
        others = "" if model in source.models else f"; its replies are of {', '.join(sorted(source.models))}"
        super().__init__(
            f"{source.name!r} holds no reply to this call of {model!r} (sample {sampling.index}){others}",
            remedy="--or-live asks the model for it; the prompts, the settings or the code may be others now",
        )


def absent_model(name: str) -> RefusingModel:
    """Stands for a model that only answers from a record, so that neither key nor weights are needed."""
    why = f"{name!r} is only replayed here and cannot be asked"
    return RefusingModel(name, lambda: ModelError(why))


def open_replies(where: Path, *, may_be_empty: bool = False) -> ReplySource:
    """The replies of a run, or of a file of them.

    Args:
        where: A run's folder, its folder of replies, or a file with one entry a line.
        may_be_empty: Accept a run that asked no model.

    Raises:
        UsageError: There are no replies, or there is no such file.
        StorageError: They cannot be read.
    """
    is_run = (where / "ledger.jsonl").is_file()  # it may have asked nobody
    folder = where / "replies" if is_run or (where / "replies").is_dir() else where
    read = _entries_of_folder(folder) if is_run or folder.is_dir() else _entries_of_file(where)
    name = where.parent.name if where.name == "replies" else where.name
    entries: dict[str, Mapping[str, Any]] = {}
    for key, entry in read:
        if key not in entries or "reply" in entry:  # a call that failed first and was answered later
            entries[key] = entry
    if not entries and not may_be_empty:
        raise UsageError(f"{str(where)!r} holds no replies", remedy="name a run that asked a model")
    models = frozenset(str(entry.get("model", "")) for entry in entries.values())
    return ReplySource(name=name, models=models, entries=entries)


def _entries_of_folder(folder: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path in sorted(folder.glob("*.json")):
        yield _keyed(_read(path, MOST_REPLY_BYTES), str(path))


def _entries_of_file(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in enumerate(_read(path).splitlines(), 1):
        if line.strip():
            yield _keyed(line, f"line {number} of {str(path)!r}")


def _read(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    try:
        return read_stored(path, most_bytes, "the replies")
    except FileNotFoundError as fault:
        raise UsageError(f"there is no {str(path)!r}", remedy="name a run or a file of replies") from fault


def _keyed(raw: bytes, where: str) -> tuple[str, Mapping[str, Any]]:
    """An entry by the hash of its call, computed anew: the file's name is not asked."""
    try:
        entry = json.loads(raw)
        messages = [Message(**message) for message in entry["messages"]]
        return call_hash(entry["model"], messages, _known(Sampling, entry["sampling"])), entry
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as fault:
        raise StorageError(f"{where} is no recorded reply: {fault!r}") from fault


def reply_of_record(plain: Mapping[str, Any]) -> Reply:
    """A reply as it was recorded, by this version or another.

    Raises:
        StorageError: It is damaged.
    """
    return _known(Reply, plain)


def _known(cls: type[T], plain: Mapping[str, Any]) -> T:
    """A record of ours out of a JSON object; what a newer Suture wrote besides is passed over."""
    try:
        return from_plain(cls, plain)
    except (ValueError, TypeError, AttributeError) as fault:
        raise StorageError(f"a recorded {cls.__name__} is damaged: {fault}") from fault


def _raise_again(fault: Mapping[str, Any]) -> NoReturn:
    kinds = {kind.__name__: kind for kind in _with_subclasses(ModelError)}
    kind = kinds.get(str(fault.get("kind")), ModelError)
    again = kind(str(fault.get("message") or "the model failed"), remedy=str(fault.get("remedy") or ""))
    again.replayed = True
    raise again


def _with_subclasses(kind: type[ModelError]) -> Iterator[type[ModelError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _with_subclasses(narrower)

"""What names a call: model, messages and sampling."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from suture.core.ledger import normalise_text
from suture.core.records import content_hash, decode_record
from suture.core.safe_files import read_stored, write_atomically
from suture.errors import ModelError, StorageError, UsageError
from suture.models.chat_model import Message, Model, RefusingModel, Reply, Sampling
from suture.models.tokens import count_tokens

FIRST_FIELDS = ("temperature", "max_tokens", "index")
"""Of a sampling. Others came later; they name a call only where they are used, so that old hashes stay."""


def call_hash(model: str, messages: Sequence[Message], sampling: Sampling) -> str:
    """Name a call by what was asked of whom: model, messages and sampling, the index included.

    Prompts that differ only in what no two runs of a program share (see `normalise_text`), such as the
    duration that pytest prints, are the same call, so that a replay finds it again.
    """
    call = call_as_plain(model, messages, sampling)
    for message in call["messages"]:
        message["content"] = normalise_text(message["content"])
    return content_hash(call)


def call_as_plain(model: str, messages: Sequence[Message], sampling: Sampling) -> dict[str, Any]:
    """A call as JSON values."""
    plain = asdict(sampling)
    unused = {f.name for f in fields(sampling) if f.name not in FIRST_FIELDS and plain[f.name] == f.default}
    return {
        "model": model,
        "messages": [asdict(message) for message in messages],
        "sampling": {name: value for name, value in plain.items() if name not in unused},
    }


T = TypeVar("T")
MAX_RECORDING_BYTES = 2**30
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
        yield _keyed(_read(path, MAX_REPLY_RECORD_BYTES), str(path))


def _entries_of_file(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in enumerate(_read(path).splitlines(), 1):
        if line.strip():
            yield _keyed(line, f"line {number} of {str(path)!r}")


def _read(path: Path, most_bytes: int = MAX_RECORDING_BYTES) -> bytes:
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
        return decode_record(cls, plain)
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


MAX_REPLY_RECORD_BYTES = 256 * 2**20
"""Of a stored reply with its prompt."""
COUNTING = Sampling(max_tokens=0)
"""A count is kept like a reply without text, so that a replay shrinks its prompts as the run did."""


class RecordedModel:
    """A model whose replies are stored in a run folder and answered from there when asked again.

    Args:
        model: Who answers what is not stored yet.
        replies_dir: Holds one JSON file per call, with the prompt beside the reply; made when first needed.
        source: The replies of another run, asked before the model is.
        or_live: Whether the model is asked for what the source does not hold.
        on_stored: Called when something new is on disk, before anyone uses it.
    """

    def __init__(
        self,
        model: Model,
        replies_dir: Path,
        *,
        source: ReplySource | None = None,
        or_live: bool = False,
        on_stored: Callable[[], None] | None = None,
    ) -> None:
        self.name = model.name
        self.model = model
        self._replies_dir = replies_dir
        self._source = source
        self._or_live = or_live
        self._on_stored = on_stored
        self._locks: dict[str, asyncio.Lock] = {}

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Answer from the store, else ask and store; see `Model.complete`.

        Raises:
            StorageError: A stored reply is damaged, or the disk is full.
            ReplyMissing: The source does not hold the reply, and the model is not to be asked.
            ModelError: The model failed, now or when the source was recorded.
        """
        key = call_hash(self.name, messages, sampling)
        # Two equal calls at once are one call: the second waits and finds the first one's reply.
        async with self._locks.setdefault(key, asyncio.Lock()):
            stored = self._load(key)
            if stored is not None:
                return stored
            # The branches of a round reserve their budget before any of them is answered, as they do with
            # a model that takes its time: a replay must decide as the run did.
            await asyncio.sleep(0)
            call = call_as_plain(self.name, messages, sampling)
            try:
                reply = replace(await self._ask(key, messages, sampling), call_hash=key)
            except ModelError as fault:
                said = {"kind": type(fault).__name__, "message": fault.message, "remedy": fault.remedy}
                self._store(f"{key}.fault.json", {**call, "fault": said})
                raise
            self._store(f"{key}.json", {**call, "reply": asdict(reply)})
            return reply

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """The tokens of a prompt, from the store or the source; else counted, and stored."""
        key = call_hash(self.name, messages, COUNTING)
        known = self._load(key) or (self._source.find(key) if self._source is not None else None)
        tokens = known.prompt_tokens if known else await count_tokens(self.model, messages)
        if known is None or known.from_run:
            counted = Reply(text="", prompt_tokens=tokens, model=self.name, call_hash=key)
            call = call_as_plain(self.name, messages, COUNTING)
            self._store(f"{key}.json", {**call, "reply": asdict(counted)})
        return tokens

    async def close(self) -> None:
        """Close the model behind it."""
        await self.model.close()

    async def _ask(self, key: str, messages: Sequence[Message], sampling: Sampling) -> Reply:
        if self._source is not None:
            recorded = self._source.find(key)
            if recorded is not None:
                return recorded
            if not self._or_live:
                raise ReplyMissing(self._source, self.name, sampling)
        return await self.model.complete(messages, sampling)

    def _load(self, key: str) -> Reply | None:
        path = self._replies_dir / f"{key}.json"
        try:
            stored = reply_of_record(
                json.loads(read_stored(path, MAX_REPLY_RECORD_BYTES, "the reply"))["reply"]
            )
            return replace(stored, replayed=True, from_run="")
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, RecursionError, StorageError) as fault:
            raise StorageError(
                f"the stored reply {str(path)!r} is damaged",
                remedy="delete that file; the model is then asked again",
            ) from fault

    def _store(self, name: str, entry: Mapping[str, Any]) -> None:
        # ASCII only: a lone surrogate in model text must not make the record unwritable.
        write_atomically(self._replies_dir / name, json.dumps(entry, indent=1).encode("ascii"))
        if self._on_stored is not None:
            self._on_stored()

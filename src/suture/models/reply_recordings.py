"""Recordings of replies: each reply is on disk before it is used, so it is never paid for twice.

`RecordedModel` writes and reads the replies of a run; `ReplyRecording` holds those of an earlier run for a
replay.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from suture.core.ledger import normalise_text
from suture.core.records import content_hash, decode_record
from suture.core.safe_files import read_state_file, write_file_atomically
from suture.errors import ModelError, StorageError, UsageError
from suture.models.chat_model import Message, Model, Reply, Sampling, UnavailableModel
from suture.models.token_counting import count_tokens

IDENTIFYING_FIELDS = ("temperature", "max_tokens", "index")
"""Fields of a sampling that always identify a call (see `call_record`)."""


def call_hash(model: str, messages: Sequence[Message], sampling: Sampling) -> str:
    """Return the hash that identifies a call by model, messages and sampling (including the index).

    Prompts that differ only in details that no two runs of a program share, such as the duration that pytest
    prints, have the same hash (see `normalise_text`), so that a replay finds the call again.
    """
    call = call_record(model, messages, sampling)
    for message in call["messages"]:
        message["content"] = normalise_text(message["content"])
    return content_hash(call)


def call_record(model: str, messages: Sequence[Message], sampling: Sampling) -> dict[str, Any]:
    """Return a call as JSON values.

    Temperature, token limit and index always identify a call. Other sampling fields are included only if they
    are set, so that a new field does not change the hashes of the benchmarks' recordings.
    """
    values = asdict(sampling)
    return {
        "model": model,
        "messages": [_message_record(message) for message in messages],
        "sampling": {
            field.name: values[field.name]
            for field in fields(sampling)
            if field.name in IDENTIFYING_FIELDS or values[field.name] != field.default
        },
    }


def _message_record(message: Message) -> dict[str, Any]:
    """Return a message as JSON values, without the fields about tools where it has none."""
    values = asdict(message)
    return {key: value for key, value in values.items() if value or key in ("role", "content")}


T = TypeVar("T")
MAX_RECORDING_BYTES = 2**30
"""Limit of a file of replies; those of the benchmarks have a tenth of it."""
MAX_REPLY_RECORD_BYTES = 256 * 2**20
"""Limit of one recorded reply with its prompt. Chosen by judgement; not measured."""


@dataclass(frozen=True, kw_only=True)
class ReplyRecording:
    """The replies of an earlier run, by call hash.

    Attributes:
        name: The recording's origin, for people: a run's id or a file's name.
        models: Names of the models that replied, as `provider:model`.
        entries: Call hash -> the entry as it was recorded.
    """

    name: str
    models: frozenset[str]
    entries: Mapping[str, Mapping[str, Any]]

    def find(self, key: str) -> Reply | None:
        """Return the recorded reply to a call, or `None`.

        Raises:
            ModelError: The model failed when the call was recorded.
            StorageError: The entry is damaged.
        """
        entry = self.entries.get(key)
        if entry is None:
            return None
        if "reply" not in entry:
            _raise_recorded_fault(entry.get("fault", {}))
        return replace(_parse_record(Reply, entry["reply"]), replayed=True, from_run=self.name)


class ReplyNotRecorded(UsageError):
    """A replay made a call that is not in its recording."""

    def __init__(self, source: ReplyRecording, model: str, sampling: Sampling) -> None:
        origin = "" if model in source.models else f"; its replies are of {', '.join(sorted(source.models))}"
        super().__init__(
            f"{source.name!r} holds no reply to this call of {model!r} (sample {sampling.index}){origin}",
            remedy="--or-live asks the model for it; prompts, settings or code may have changed since then",
        )


def replay_only_model(name: str) -> UnavailableModel:
    """Return a stand-in for a model whose replies all come from a recording; it needs no key or weights."""
    return UnavailableModel(name, lambda: ModelError(f"{name!r} is only replayed here and cannot be asked"))


def load_recording(path: Path, *, may_be_empty: bool = False) -> ReplyRecording:
    """Load the replies of a run, or of a file of replies.

    Args:
        path: A run's folder, its folder of replies, or a file with one entry per line.
        may_be_empty: Whether a run without model calls is accepted.

    Raises:
        UsageError: There are no replies, or no such file.
        StorageError: The replies cannot be read.
    """
    is_run = (path / "ledger.jsonl").is_file()  # a run may have made no call
    folder = path / "replies" if is_run or (path / "replies").is_dir() else path
    if is_run or folder.is_dir():
        files = sorted(folder.glob("*.json"))
        calls = [_parse_entry(_read_bytes(file, MAX_REPLY_RECORD_BYTES), str(file)) for file in files]
    else:
        lines = enumerate(_read_bytes(path, MAX_RECORDING_BYTES).splitlines(), 1)
        calls = [
            _parse_entry(line, f"line {number} of {str(path)!r}") for number, line in lines if line.strip()
        ]
    entries: dict[str, Mapping[str, Any]] = {}
    for key, entry in calls:
        if key not in entries or "reply" in entry:  # a call that failed first and was answered later
            entries[key] = entry
    if not entries and not may_be_empty:
        raise UsageError(f"{str(path)!r} holds no replies", remedy="name a run that asked a model")
    return ReplyRecording(
        name=path.parent.name if path.name == "replies" else path.name,
        models=frozenset(str(entry.get("model", "")) for entry in entries.values()),
        entries=entries,
    )


def _read_bytes(path: Path, max_bytes: int) -> bytes:
    try:
        return read_state_file(path, max_bytes, "the replies")
    except FileNotFoundError as fault:
        raise UsageError(f"there is no {str(path)!r}", remedy="name a run or a file of replies") from fault


def _parse_entry(text: bytes, origin: str) -> tuple[str, Mapping[str, Any]]:
    """Return `(call_hash, entry)`; the hash is computed from the entry and not taken from the file's name."""
    try:
        entry = json.loads(text)
        messages = [_parse_record(Message, message) for message in entry["messages"]]
        return call_hash(entry["model"], messages, _parse_record(Sampling, entry["sampling"])), entry
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as fault:
        raise StorageError(f"{origin} is not a recorded reply: {fault!r}") from fault


def _parse_record(cls: type[T], values: Mapping[str, Any]) -> T:
    """Parse one of our records; fields that a newer Suture added are ignored."""
    try:
        return decode_record(cls, values)
    except (ValueError, TypeError, AttributeError) as fault:
        raise StorageError(f"a recorded {cls.__name__} is damaged: {fault}") from fault


def _raise_recorded_fault(fault: Mapping[str, Any]) -> NoReturn:
    classes = {cls.__name__: cls for cls in _class_tree(ModelError)}
    error_class = classes.get(str(fault.get("kind")), ModelError)
    error = error_class(
        str(fault.get("message") or "the model failed"), remedy=str(fault.get("remedy") or "")
    )
    error.is_replayed = True
    raise error


def _class_tree(cls: type[ModelError]) -> Iterator[type[ModelError]]:
    yield cls
    for subclass in cls.__subclasses__():
        yield from _class_tree(subclass)


COUNT_SAMPLING = Sampling(max_tokens=0)
"""Sampling of a recorded token count, which is stored like a reply without text.

It is recorded so that a replay shrinks its prompts as the run did.
"""


class RecordedModel:
    """A model whose replies are recorded in a run folder, and answered from there when a call is repeated.

    Args:
        model: The model for calls that are not recorded yet.
        replies_dir: Holds one JSON file per call, with the prompt and the reply; created when needed.
        source: A recording of another run, which is consulted before the model.
        or_live: Whether the model is called for what the source lacks.
        on_stored: Called when something new is on disk, before anyone uses it.
    """

    def __init__(
        self,
        model: Model,
        replies_dir: Path,
        *,
        source: ReplyRecording | None = None,
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
        """Return the recorded reply, else call the model and record its reply; see `Model.complete`.

        Raises:
            StorageError: A recorded reply is damaged, or the disk is full.
            ReplyNotRecorded: The source lacks the reply, and the model may not be called.
            ModelError: The model failed, now or when the source was recorded.
        """
        key = call_hash(self.name, messages, sampling)
        # Two equal concurrent calls are one call: the second waits and finds the first one's reply.
        async with self._locks.setdefault(key, asyncio.Lock()):
            stored = self._load(key)
            if stored is not None:
                return stored
            # With a live model all branches of a round reserve budget before the first reply arrives. In a
            # replay the reply is there at once, so this branch first lets the others reach their
            # reservations. With a live model it changes nothing. A reply of this run itself, returned above,
            # was paid for before.
            await asyncio.sleep(0)
            call = call_record(self.name, messages, sampling)
            try:
                recorded = self._source.find(key) if self._source is not None else None
                if recorded is None and self._source is not None and not self._or_live:
                    raise ReplyNotRecorded(self._source, self.name, sampling)
                reply = replace(recorded or await self.model.complete(messages, sampling), call_hash=key)
            except ModelError as fault:
                error = {"kind": type(fault).__name__, "message": fault.message, "remedy": fault.remedy}
                self._store(f"{key}.fault.json", {**call, "fault": error})
                raise
            self._store(f"{key}.json", {**call, "reply": asdict(reply)})
            return reply

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Return the tokens of a prompt from the recordings, else count and record them."""
        key = call_hash(self.name, messages, COUNT_SAMPLING)
        recorded = self._load(key) or (self._source.find(key) if self._source is not None else None)
        tokens = recorded.prompt_tokens if recorded else await count_tokens(self.model, messages)
        if recorded is None or recorded.from_run:  # `from_run`: it is another run's, and not stored here yet.
            counted = Reply(text="", prompt_tokens=tokens, model=self.name, call_hash=key)
            call = call_record(self.name, messages, COUNT_SAMPLING)
            self._store(f"{key}.json", {**call, "reply": asdict(counted)})
        return tokens

    async def close(self) -> None:
        """Close the model whose replies are recorded."""
        await self.model.close()

    def _load(self, key: str) -> Reply | None:
        """Return a stored reply of this run; `None` if there is none."""
        path = self._replies_dir / f"{key}.json"
        try:
            entry = json.loads(read_state_file(path, MAX_REPLY_RECORD_BYTES, "the reply"))
            return replace(_parse_record(Reply, entry["reply"]), replayed=True, from_run="")
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, RecursionError, StorageError) as fault:
            raise StorageError(
                f"the stored reply {str(path)!r} is damaged",
                remedy="delete that file; the model is then asked again",
            ) from fault

    def _store(self, name: str, entry: Mapping[str, Any]) -> None:
        # ASCII only: a lone surrogate in model text must not make the record unwritable.
        write_file_atomically(self._replies_dir / name, json.dumps(entry, indent=1).encode("ascii"))
        if self._on_stored is not None:
            self._on_stored()

"""A pool of replies that all arms of a benchmark share, so that each reply is paid for once."""

from __future__ import annotations

import asyncio
import gzip
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from suture.bench.problem import Problem
from suture.core.ledger import normalise_text
from suture.core.records import content_hash, decode_record, encode_record
from suture.core.safe_files import write_file_atomically
from suture.errors import StorageError, UsageError
from suture.models import Message, Model, Reply, Sampling, call_hash, count_tokens, replay_only_model
from suture.models.chat_model import FinishReason


@dataclass(frozen=True, kw_only=True)
class RecordedReply:
    """One reply of a model to a task's prompt, which is called a draw: the same call can be sampled repeatedly.

    Attributes:
        prompt: The hash of the messages.
        call: The hash of the whole call, including `max_tokens`, as run folders have it.
        index: The number of the draw among several draws of one call.
        extra: The hash of further options, such as a schema; empty if there were none.
        prompt_tokens: Tokens of the prompt, as the provider counts them.
        completion_tokens: Tokens of the reply, as the provider counts them.
    """

    dataset: str
    problem: str
    model: str
    prompt: str
    call: str
    temperature: float
    max_tokens: int
    index: int
    extra: str = ""
    reply: str
    finish: FinishReason
    prompt_tokens: int
    completion_tokens: int
    seconds: float = 0.0

    @property
    def key(self) -> str:
        """The key of the draw, whatever its `max_tokens`: a higher limit does not change a complete reply."""
        return make_draw_key(self.model, self.prompt, self.temperature, self.index, self.extra)

    @property
    def max_tokens_covered(self) -> float:
        """The highest `max_tokens` of a call that this reply can answer; infinite if the reply ended on its own."""
        return self.max_tokens if self.finish == "length" else math.inf

    def replay_with_limit(self, max_tokens: int) -> Reply | None:
        """Return the reply as it would have come with another limit, or `None` if it would have continued.

        A reply that exceeds the limit is cut at that share of its characters, because the positions of its
        tokens in the text were not recorded.
        """
        text, finish, tokens = self.reply, self.finish, self.completion_tokens
        if max_tokens > self.max_tokens_covered:
            return None
        if tokens > max_tokens:
            text = text[: math.floor(len(text) * max_tokens / tokens)]
            finish, tokens = "length", max_tokens
        return Reply(
            text=text,
            finish=finish,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=tokens,
            seconds=self.seconds,
            model=self.model,
        )


def make_draw_key(model: str, prompt: str, temperature: float, index: int, extra: str) -> str:
    """Return the key of a draw: a hash of the whole request except the limit of the reply's length."""
    return content_hash([model, prompt, float(temperature), index, extra])


def hash_prompt(messages: Sequence[Message]) -> str:
    """Return the hash of messages without the parts that differ between runs, as in the hash of a call."""
    return content_hash([[message.role, normalise_text(message.content)] for message in messages])


def hash_extra_options(sampling: Sampling) -> str:
    """Return the hash of the further options of a call; empty if there are none."""
    options: dict[str, object] = {"logprobs": sampling.logprobs, "schema": sampling.schema}
    if sampling.stop:  # only if it is set, so that it does not change the keys of other calls
        options["stop"] = list(sampling.stop)
    return content_hash(options) if any(options.values()) else ""


def read_recording(path: Path) -> Iterator[RecordedReply]:
    """Yield the replies in a file of JSON lines, compressed if its name ends in `.gz`."""
    try:
        raw = path.read_bytes()
        text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError) as fault:
        raise UsageError(f"the recording {str(path)!r} cannot be read: {fault}") from fault
    for number, line in enumerate(text.splitlines(), 1):
        try:
            yield decode_record(RecordedReply, json.loads(line))
        except (ValueError, TypeError) as fault:
            raise StorageError(f"line {number} of {str(path)!r} is no recorded reply: {fault}") from fault


def write_recording(path: Path, draws: Iterable[RecordedReply]) -> int:
    """Write replies as sorted JSON lines, compressed if the name ends in `.gz`; return their number.

    Of several replies with the same key and limit, the first is written. Equal replies give equal bytes.
    """
    unique_draws: dict[tuple[str, float], RecordedReply] = {}
    for draw in draws:
        unique_draws.setdefault((draw.key, draw.max_tokens_covered), draw)
    ordered = sorted(
        unique_draws.values(),
        key=lambda d: (d.dataset, d.problem, d.prompt, d.temperature, d.index, d.key, d.max_tokens_covered),
    )
    lines = "".join(json.dumps(encode_record(draw)) + "\n" for draw in ordered).encode("ascii")
    write_file_atomically(path, gzip.compress(lines, mtime=0) if path.suffix == ".gz" else lines)
    return len(ordered)


def read_draws(folder: Path, problems: Iterable[Problem]) -> Iterator[RecordedReply]:
    """Yield the replies in a folder and its subfolders, one JSON file each.

    A file is in the form of a pool, or in that of a run folder, which holds the prompt. A prompt belongs to
    the problem whose statement it contains.
    """
    # If one statement contains another, the prompt belongs to the longer one.
    longest_first = sorted(problems, key=lambda problem: -len(problem.statement))
    for path in sorted(folder.rglob("*.json")):
        if path.name.endswith(".fault.json"):
            continue  # a call that failed, without a reply
        try:
            entry = json.loads(path.read_bytes())
            if "reply" not in entry or "messages" not in entry:
                yield decode_record(RecordedReply, entry)
                continue
            draw = _draw_from_run(entry, longest_first)
        except (ValueError, TypeError, KeyError) as fault:
            raise StorageError(f"{str(path)!r} is no recorded reply: {fault!r}") from fault
        if draw is not None:
            yield draw


def _draw_from_run(entry: Mapping[str, Any], problems: Sequence[Problem]) -> RecordedReply | None:
    messages = [Message(**message) for message in entry["messages"]]
    sampling, reply = Sampling(**entry["sampling"]), entry["reply"]
    prompt = "\n".join(message.content for message in messages)
    problem = next((problem for problem in problems if problem.statement.strip() in prompt), None)
    # A prompt of another data set, or one whose tokens were only counted.
    if problem is None or sampling.max_tokens == 0:
        return None
    # Recordings contain no log probabilities.
    return make_draw(problem, entry["model"], messages, sampling, Reply(**{**reply, "logprobs": ()}))


def make_draw(
    problem: Problem, model: str, messages: Sequence[Message], sampling: Sampling, reply: Reply
) -> RecordedReply:
    """Return a reply as a recorded reply to a task."""
    return RecordedReply(
        dataset=problem.dataset,
        problem=problem.id,
        model=model,
        prompt=hash_prompt(messages),
        call=call_hash(model, messages, sampling),
        temperature=float(sampling.temperature),
        max_tokens=sampling.max_tokens,
        index=sampling.index,
        extra=hash_extra_options(sampling),
        reply=reply.text,
        finish=reply.finish,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        seconds=round(reply.seconds, 3),
    )


SEED_STRIDE = 1000
"""Number of sample numbers that each repetition has for one call; the next repetition uses the following ones. Far more
than arms draw. Chosen by judgement; not measured."""


class ReplyPool:
    """A pool of recorded replies: files that are only read, and a folder to which new replies are added.

    A reply that was cut is kept in addition to a longer one that was drawn later. A call is answered with the reply
    that answered it first, so that a replay takes the same course.

    Args:
        folder: Holds one JSON file for each reply; created when it is first needed. Several processes may
            share it.
        recordings: Files of `write_recording`, which are only read.
    """

    def __init__(
        self, folder: Path, recordings: Iterable[Path] = (), draws: Iterable[RecordedReply] = ()
    ) -> None:
        self.folder = folder
        self._recorded: dict[str, list[RecordedReply]] = defaultdict(list)
        self._locks: dict[str, asyncio.Lock] = {}
        self._draws_by_task: _TaskIndex | None = None
        for draw in chain(draws, *map(read_recording, recordings)):
            self._recorded[draw.key].append(draw)

    def find(self, key: str, max_tokens: int) -> Reply | None:
        """Return a recorded reply as it would have come with this token limit."""
        # Later draws of a key have higher limits than earlier ones, so the shortest that suffices came first.
        draws: list[RecordedReply] = [*self._recorded.get(key, ()), *self._read_stored_draws(key)]
        for draw in sorted(draws, key=lambda draw: draw.max_tokens_covered):
            if (reply := draw.replay_with_limit(max_tokens)) is not None:
                return replace(reply, replayed=True, from_run="pool")
        return None

    def add(self, draw: RecordedReply) -> None:
        """Write a reply to the folder before anyone uses it."""
        limit = "whole" if math.isinf(draw.max_tokens_covered) else f"{draw.max_tokens_covered:g}"
        path = self._key_folder(draw.key) / f"{draw.key}-{limit}.json"
        write_file_atomically(path, json.dumps(encode_record(draw)).encode("ascii"))
        if self._draws_by_task is not None:
            _add_to_index(self._draws_by_task, draw)

    def draws_for(self, problem: Problem, model: str) -> tuple[RecordedReply, ...]:
        """Return every reply of a model to a task, to be sent to another machine that works on it.

        The folder is read the first time. Replies that another process adds later are not included.
        """
        if self._draws_by_task is None:
            self._draws_by_task = defaultdict(dict)
            for draw in chain(read_draws(self.folder, ()), *self._recorded.values()):
                _add_to_index(self._draws_by_task, draw)
        return tuple(self._draws_by_task[problem.dataset, problem.id, model].values())

    def lock(self, key: str) -> asyncio.Lock:
        """Return the lock to hold while a reply is searched for and requested.

        Two arms that need the same reply at once must not both pay for it.
        """
        return self._locks.setdefault(key, asyncio.Lock())

    def _key_folder(self, key: str) -> Path:
        return self.folder / key[:2]

    def _read_stored_draws(self, key: str) -> Iterator[RecordedReply]:
        for path in sorted(self._key_folder(key).glob(f"{key}-*.json")):
            try:
                yield decode_record(RecordedReply, json.loads(path.read_bytes()))
            except (OSError, ValueError, TypeError) as fault:
                raise StorageError(
                    f"the recorded reply {str(path)!r} is damaged",
                    remedy="delete it; the model is asked again",
                ) from fault


_TaskIndex = defaultdict[tuple[str, str, str], dict[tuple[str, float], RecordedReply]]
"""(data set, task, model) -> (key, limit) -> reply."""


def _add_to_index(index: _TaskIndex, draw: RecordedReply) -> None:
    index[draw.dataset, draw.problem, draw.model][draw.key, draw.max_tokens_covered] = draw


class PooledModel:
    """A model that answers a task's calls from a pool, and adds missing replies to the pool.

    Args:
        model: The model that is asked for missing replies; `None` makes a missing reply an error.
        name: The name of the model as `provider:model`, under which replies are recorded.
        seed: The number of the repetition. Each repetition has its own samples; greedy replies are the same
            in all.
    """

    def __init__(
        self, model: Model | None, name: str, pool: ReplyPool, problem: Problem, *, seed: int = 0
    ) -> None:
        self.name = name
        self._model = model
        self._pool = pool
        self._problem = problem
        self._seed = seed

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Answer from the pool, or ask the model and add the reply; see `Model.complete`.

        Raises:
            UsageError: The pool does not hold the reply, and there is no model to ask.
            StorageError: A recorded reply is damaged, or the disk is full.
        """
        if sampling.temperature > 0:
            sampling = replace(sampling, index=sampling.index + self._seed * SEED_STRIDE)
        prompt, extra = hash_prompt(messages), hash_extra_options(sampling)
        key = make_draw_key(self.name, prompt, sampling.temperature, sampling.index, extra)
        async with self._pool.lock(key):
            known_reply = self._pool.find(key, sampling.max_tokens)
            if known_reply is not None:
                return known_reply
            if self._model is None:
                raise UsageError(
                    f"the recordings hold no reply of {self.name!r} to a call for {self._problem.id} "
                    f"(T={sampling.temperature:g}, sample {sampling.index})",
                    remedy="let the model be asked: leave out --replayed",
                )
            reply = await self._model.complete(messages, sampling)
            # If another process was faster, its reply counts: a replay could return only one of the two.
            if (earlier_reply := self._pool.find(key, sampling.max_tokens)) is not None:
                return earlier_reply
            self._pool.add(make_draw(self._problem, self.name, messages, sampling, reply))
            return reply

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Return the tokens of a prompt as the model counts them, or an estimate if there is no model."""
        return await count_tokens(self._model or replay_only_model(self.name), messages)

    async def close(self) -> None:
        """Do nothing: the model is shared, and its owner closes it."""

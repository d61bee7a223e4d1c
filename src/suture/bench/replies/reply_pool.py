"""A pool of replies that all arms of a benchmark share, so that each reply is paid for once."""

from __future__ import annotations

import asyncio
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from suture.bench.problem import Problem
from suture.bench.replies.recordings import (
    RecordedReply,
    hash_extra_options,
    hash_prompt,
    make_draw,
    make_draw_key,
    read_draws,
    read_recording,
)
from suture.core.records import decode_record, encode_record
from suture.core.safe_files import write_file_atomically
from suture.errors import StorageError, UsageError
from suture.models import Message, Model, Reply, Sampling, count_tokens, replay_only_model

SEED_STRIDE = 1000
"""How many sample numbers each repetition has for one call; the next repetition uses the following ones. Far more than
arms draw. Chosen by judgement; not measured."""


class ReplyPool:
    """A pool of recorded replies: files that are only read, and a folder to which new replies are added.

    A reply that was cut stays beside a longer one that was drawn later. A call is answered with the reply
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

"""One pool of replies for all arms of a benchmark: what one of them drew, no other pays for again."""

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
    draw_key,
    draw_of,
    draws_in,
    extra_of,
    prompt_hash,
    read_recording,
)
from suture.core.records import from_plain, to_plain
from suture.core.safe_files import write_atomically
from suture.errors import StorageError, UsageError
from suture.models import Message, Model, Reply, Sampling, absent_model, count_tokens

SEED_STRIDE = 1000
"""Draws of one repetition; the next one's have indices of their own."""


class ReplyPool:
    """Draws by their key: recordings, and a folder to which new ones are added.

    A reply that was cut stays beside the longer one that was drawn later: a call is answered with what
    answered it first, so that a replay takes no other turn.

    Args:
        folder: One JSON file for each draw; made when it is first needed. Several processes may share it.
        recordings: Files of `write_recording`, which are only read.
        draws: Others that are known.

    Raises:
        UsageError: There is no such recording.
        StorageError: It is damaged.
    """

    def __init__(
        self, folder: Path, recordings: Iterable[Path] = (), draws: Iterable[RecordedReply] = ()
    ) -> None:
        self.folder = folder
        self._recorded: dict[str, list[RecordedReply]] = defaultdict(list)
        self._locks: dict[str, asyncio.Lock] = {}
        self._by_task: _Index | None = None
        for draw in chain(draws, *map(read_recording, recordings)):
            self._recorded[draw.key].append(draw)

    def find(self, key: str, max_tokens: int) -> Reply | None:
        """A recorded reply as it would have come with this limit of its length.

        Raises:
            StorageError: A draw of the folder is damaged.
        """
        # Later draws of a key reach further than all before them, so the shortest that suffices came first.
        known = sorted((*self._recorded.get(key, ()), *self._kept(key)), key=lambda draw: draw.reach)
        replies = filter(None, (draw.answer(max_tokens) for draw in known))
        return next((replace(reply, replayed=True, from_run="pool") for reply in replies), None)

    def keep(self, draw: RecordedReply) -> None:
        """Write a draw down before anyone uses it.

        Raises:
            StorageError: The disk is full or gone.
        """
        reach = "whole" if math.isinf(draw.reach) else f"{draw.reach:g}"
        path = self._shelf(draw.key) / f"{draw.key}-{reach}.json"
        write_atomically(path, json.dumps(to_plain(draw)).encode("ascii"))
        if self._by_task is not None:
            _enter(self._by_task, draw)

    def known(self, problem: Problem, model: str) -> tuple[RecordedReply, ...]:
        """Every draw of a task by a model, to be sent to where it is worked on.

        The folder is read the first time. What another process adds later is not among them.

        Raises:
            StorageError: A draw of the folder is damaged.
        """
        if self._by_task is None:
            self._by_task = defaultdict(dict)
            for draw in chain(draws_in(self.folder, ()), *self._recorded.values()):
                _enter(self._by_task, draw)
        return tuple(self._by_task[problem.dataset, problem.id, model].values())

    def lock(self, key: str) -> asyncio.Lock:
        """To be held while a draw is looked for and made: two arms that want it at once pay for it once."""
        return self._locks.setdefault(key, asyncio.Lock())

    def _shelf(self, key: str) -> Path:
        return self.folder / key[:2]

    def _kept(self, key: str) -> Iterator[RecordedReply]:
        for path in sorted(self._shelf(key).glob(f"{key}-*.json")):
            try:
                yield from_plain(RecordedReply, json.loads(path.read_bytes()))
            except (OSError, ValueError, TypeError) as fault:
                raise StorageError(
                    f"the recorded reply {str(path)!r} is damaged",
                    remedy="delete it; the model is asked again",
                ) from fault


_Index = defaultdict[tuple[str, str, str], dict[tuple[str, float], RecordedReply]]
"""(set, task, model) -> its draws, by what the name of a draw's file says."""


def _enter(index: _Index, draw: RecordedReply) -> None:
    index[draw.dataset, draw.problem, draw.model][draw.key, draw.reach] = draw


class PooledModel:
    """A model that answers a task's calls from a pool, and adds to the pool what was not in it.

    Args:
        model: Who is asked for what the pool lacks; `None` makes that an error.
        name: `provider:model`, which the draws are of.
        pool: The pool.
        problem: The task.
        seed: Which repetition; each but the first has samples of its own. Greedy replies are the same in all.
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
        """Answer from the pool, else ask and keep; see `Model.complete`.

        Raises:
            UsageError: The pool does not hold the reply, and there is no model to ask.
            StorageError: A recorded reply is damaged, or the disk is full.
        """
        drawn = sampling
        if sampling.temperature > 0:
            drawn = replace(sampling, index=sampling.index + self._seed * SEED_STRIDE)
        prompt = prompt_hash(messages)
        key = draw_key(self.name, prompt, drawn.temperature, drawn.index, extra_of(drawn))
        async with self._pool.lock(key):
            known = self._pool.find(key, sampling.max_tokens)
            if known is not None:
                return known
            if self._model is None:
                raise UsageError(
                    f"the recordings hold no reply of {self.name!r} to a call for {self._problem.id} "
                    f"(T={drawn.temperature:g}, sample {drawn.index})",
                    remedy="let the model be asked: leave out --replayed",
                )
            reply = await self._model.complete(messages, drawn)
            # Where another process was faster, its reply stands: of two, a replay could give but one.
            if (first := self._pool.find(key, sampling.max_tokens)) is not None:
                return first
            self._pool.keep(draw_of(self._problem, self.name, messages, drawn, reply))
            return reply

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """The tokens of a prompt: as the model counts, or an estimate where there is none to ask."""
        return await count_tokens(self._model or absent_model(self.name), messages)

    async def close(self) -> None:
        """Nothing: the model is shared, and closed by who opened it."""

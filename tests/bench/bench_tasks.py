"""A small data set in a published format, and a model whose reply depends only on the prompt."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from suture.bench.replies.reply_pool import hash_prompt, make_draw_key
from suture.bench.rows import BenchmarkRow
from suture.models import Message, Reply, Sampling

RIGHT_SOLUTION = "def times_{n}(x):\n    return x * {n}\n"
WRONG_SOLUTION = "def times_{n}(x):\n    return x * {n} + x % {wrong}\n"


def write_mbpp_tasks(data: Path, count: int) -> list[str]:
    """Write tasks in the format of MBPP, and return their ids."""
    records = [
        {
            "task_id": n,
            "prompt": f"Write a function times_{n} that gives {n} times its argument.",
            "code": RIGHT_SOLUTION.format(n=n),
            "test_imports": [],
            "test_list": [f"assert times_{n}({x}) == {x * n}" for x in (0, 7, 1234)],
        }
        for n in range(2, count + 2)
    ]
    data.mkdir(parents=True, exist_ok=True)
    (data / "sanitized-mbpp.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return [f"MBPP/{record['task_id']}" for record in records]


class LuckyModel:
    """A model that is right for about one prompt in three, by the prompt's hash, and logs each call."""

    name = "lucky:model"

    def __init__(self, log: Path, *, pause_s: float = 0.0) -> None:
        self._log = log
        self._pause_s = pause_s

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        call = json.dumps([messages[-1].content, sampling.temperature, sampling.index])
        digest = int(hashlib.sha256(call.encode()).hexdigest(), 16)
        key = make_draw_key(self.name, hash_prompt(messages), sampling.temperature, sampling.index, "")
        with self._log.open("a") as log:
            log.write(f"{key}\n")
        await asyncio.sleep(self._pause_s * (1 + digest % 3))
        match = re.search(r"times_(\d+)", messages[-1].content)
        assert match is not None
        n = match.group(1)
        code = (
            RIGHT_SOLUTION.format(n=n)
            if digest % 3 == 0
            else WRONG_SOLUTION.format(n=n, wrong=2 + digest % 5)
        )
        return Reply(
            text=f"```python\n{code}```",
            prompt_tokens=100,
            completion_tokens=40 + digest % 200,
            model=self.name,
        )

    async def close(self) -> None:
        """Do nothing, because the model holds no resource."""


def read_calls(log: Path) -> list[str]:
    """Return the logged calls in order, each as the key of its draw."""
    return log.read_text().splitlines() if log.exists() else []


def normalize_rows(rows: Sequence[BenchmarkRow]) -> list[BenchmarkRow]:
    """Return rows in a fixed order, without the fields that differ between equal runs."""
    return sorted(map(_remove_varying_fields, rows), key=lambda row: (row.problem, row.arm, row.seed))


def _remove_varying_fields(row: BenchmarkRow) -> BenchmarkRow:
    steps = tuple(
        replace(step, seconds=0.0, grade=replace(step.grade, wall_s=0.0, cpu_s=None) if step.grade else None)
        for step in row.steps
    )
    return replace(row, run="", seconds=0.0, model_s=0.0, checks_s=0.0, steps=steps)

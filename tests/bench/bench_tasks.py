"""A small set in a published format, and a model that answers by the prompt alone, whoever asks when."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from suture.bench.replies.recordings import hash_prompt, make_draw_key
from suture.bench.rows import BenchmarkRow
from suture.models import Message, Reply, Sampling

RIGHT = "def times_{n}(x):\n    return x * {n}\n"
WRONG = "def times_{n}(x):\n    return x * {n} + x % {wrong}\n"


def write_set(data: Path, count: int) -> list[str]:
    """MBPP's own format; answers the ids."""
    records = [
        {
            "task_id": n,
            "prompt": f"Write a function times_{n} that gives {n} times its argument.",
            "code": RIGHT.format(n=n),
            "test_imports": [],
            "test_list": [f"assert times_{n}({x}) == {x * n}" for x in (0, 7, 1234)],
        }
        for n in range(2, count + 2)
    ]
    data.mkdir(parents=True, exist_ok=True)
    (data / "sanitized-mbpp.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return [f"MBPP/{record['task_id']}" for record in records]


class LuckyModel:
    """Right for about one prompt in three, by the prompt's hash; each call is one line of a file."""

    name = "lucky:model"

    def __init__(self, log: Path, *, pause_s: float = 0.0) -> None:
        self._log = log
        self._pause_s = pause_s

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        asked = json.dumps([messages[-1].content, sampling.temperature, sampling.index])
        luck = int(hashlib.sha256(asked.encode()).hexdigest(), 16)
        key = make_draw_key(self.name, hash_prompt(messages), sampling.temperature, sampling.index, "")
        with self._log.open("a") as log:
            log.write(f"{key}\n")
        await asyncio.sleep(self._pause_s * (1 + luck % 3))
        found = re.search(r"times_(\d+)", messages[-1].content)
        assert found is not None
        n = found.group(1)
        code = RIGHT.format(n=n) if luck % 3 == 0 else WRONG.format(n=n, wrong=2 + luck % 5)
        return Reply(
            text=f"```python\n{code}```",
            prompt_tokens=100,
            completion_tokens=40 + luck % 200,
            model=self.name,
        )

    async def close(self) -> None:
        """Nothing is open."""


def calls_in(log: Path) -> list[str]:
    """The calls by the key of their draw, in order."""
    return log.read_text().splitlines() if log.exists() else []


def told_of(rows: Sequence[BenchmarkRow]) -> list[BenchmarkRow]:
    """Rows without what no two runs share, in an order of their own."""
    return sorted(map(_steady, rows), key=lambda row: (row.problem, row.arm, row.seed))


def _steady(row: BenchmarkRow) -> BenchmarkRow:
    steps = tuple(
        replace(step, seconds=0.0, grade=replace(step.grade, wall_s=0.0, cpu_s=None) if step.grade else None)
        for step in row.steps
    )
    return replace(row, run="", seconds=0.0, model_s=0.0, checks_s=0.0, steps=steps)

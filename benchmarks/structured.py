"""Diagnoses as structured replies: how many validate, with the output constrained and without.

    SUTURE_DATA=... python benchmarks/structured.py --first 50

Wanted: `SUTURE_DATA`, a folder with `humanevalfix/tasks.jsonl.gz`. For each record the model is asked what is
wrong with the code and sees the statement and the visible tests. Only the form of the answer is measured, not
whether the diagnosis is right. Constrained means that the schema goes to the server, unconstrained that the
prompt alone describes it. Each way a first reply counts as plain (the JSON asked for) or salvaged (read with
tolerance); then there are those that took another question, and those that stayed malformed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from data_files import read_data
from ending import exit_code_of

from suture.agents import DiagnosisReply, RepairBrief, draft_diagnosis_prompt, packaged_prompt
from suture.core.settings import load_settings
from suture.errors import MalformedReply
from suture.models import Message, Model, Reply, Sampling, open_model
from suture.models.structured_output import ask_structured

KINDS = ("plain", "salvaged", "asked again", "malformed")
ROOM_TOKENS = 256


@dataclass(kw_only=True)
class Asker:
    """Asks a model with the schema or without it, and keeps what it answered.

    Attributes:
        model: Who answers.
        constrained: Whether the schema goes to the server.
        replies: Every reply of the present question.
    """

    model: Model
    constrained: bool
    replies: list[Reply] = field(default_factory=list)

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """One call; see `Model.complete`."""
        asked = sampling if self.constrained else replace(sampling, schema=None)
        reply = await self.model.complete(messages, asked)
        self.replies.append(reply)
        return reply


def question(record: dict[str, Any]) -> tuple[Message, ...]:
    """The prompt of a diagnosis, uncut."""
    brief = RepairBrief(
        statement=record["instruction"],
        files={"solution.py": record["buggy_nodoc"]},
        output=f"These tests were run, and not all of them pass:\n{record['visible_tests']}",
    )
    draft = draft_diagnosis_prompt(brief, packaged_prompt("diagnose"))
    return draft.messages(draft.full_counts())


async def kind_of(record: dict[str, Any], asker: Asker) -> str:
    """Ask for one diagnosis; answers which of `KINDS` it was."""
    asker.replies.clear()
    sampling = Sampling(max_tokens=ROOM_TOKENS)
    try:
        answer = await ask_structured(
            asker.complete, question(record), DiagnosisReply, sampling, limit_tokens=2 * ROOM_TOKENS
        )
    except MalformedReply:
        return "malformed"
    if answer.calls > 1:
        return "asked again"
    return "salvaged" if answer.salvaged else "plain"


async def measure(
    records: Sequence[dict[str, Any]], model: Model, *, constrained: bool, keep: Path | None
) -> None:
    """Ask for all diagnoses one way, and print the counts."""
    asker = Asker(model=model, constrained=constrained)
    counts: Counter[str] = Counter()
    written = 0
    started_s = time.monotonic()
    for record in records:
        kind = await kind_of(record, asker)
        counts[kind] += 1
        written += sum(reply.completion_tokens for reply in asker.replies)
        if keep is not None:
            with keep.open("a") as lines:
                texts = [reply.text for reply in asker.replies]
                entry = {"id": record["id"], "constrained": constrained, "kind": kind, "replies": texts}
                lines.write(json.dumps(entry) + "\n")
    how = "constrained" if constrained else "unconstrained"
    shares = ", ".join(f"{kind} {counts[kind]}" for kind in KINDS)
    print(
        f"{how:13} {model.name}: {shares} of {len(records)}; {written} tokens written, "
        f"{time.monotonic() - started_s:.0f} s",
        flush=True,
    )


async def run(first: int, name: str, keep: Path | None) -> None:
    """Measure both ways."""
    records = read_data("humanevalfix/tasks")[:first]
    model = open_model(load_settings(Path.cwd(), {"model.name": name}).settings)
    try:
        for constrained in (True, False):
            await measure(records, model, constrained=constrained, keep=keep)
    finally:
        await model.close()


def main() -> None:
    """Read the flags and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first", type=int, default=50)
    parser.add_argument("--model", default="local:qwen2.5-coder-0.5b")
    parser.add_argument("--keep", type=Path, help="append every reply to this file, one JSON object a line")
    options = parser.parse_args()
    asyncio.run(run(options.first, options.model, options.keep))


if __name__ == "__main__":
    sys.exit(exit_code_of(main))

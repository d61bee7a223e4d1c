"""Recorded replies as a benchmark shares them: by hashes of the prompts, without a word of the tasks."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suture.bench.problem import Problem
from suture.core.ledger import steady_text
from suture.core.records import content_hash, from_plain, to_plain
from suture.core.safe_files import write_atomically
from suture.errors import StorageError, UsageError
from suture.models import Message, Reply, Sampling, call_hash
from suture.models.chat_model import Finish


@dataclass(frozen=True, kw_only=True)
class RecordedReply:
    """One reply of a model to a task's prompt.

    Attributes:
        dataset: The name of the task's data set.
        problem: The task's id in that data set.
        model: `provider:model`.
        prompt: The hash of the messages.
        call: The hash of the whole call, `max_tokens` included, as run folders have it.
        temperature: The sampling temperature.
        max_tokens: The most tokens that it could have.
        index: Which of several draws of one call it is.
        extra: The hash of what else was asked of the reply, such as a schema; empty where nothing was.
        reply: The reply's text.
        finish: Why the reply ended.
        prompt_tokens: Tokens of the prompt, as the provider counts.
        completion_tokens: Tokens of the reply, as the provider counts.
        seconds: How long the call took.
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
    finish: Finish
    prompt_tokens: int
    completion_tokens: int
    seconds: float = 0.0

    @property
    def key(self) -> str:
        """Names the draw whatever its `max_tokens`: a longer limit changes nothing of a reply that ended."""
        return draw_key(self.model, self.prompt, self.temperature, self.index, self.extra)

    @property
    def reach(self) -> float:
        """The longest limit, in tokens, that it can be the answer to; infinite where it ended by itself."""
        return self.max_tokens if self.finish == "length" else math.inf

    def answer(self, max_tokens: int) -> Reply | None:
        """The reply as it would have come with another limit.

        One that is longer than the limit is cut, at that share of its characters: where its tokens lie in
        its text was not recorded.

        Returns:
            `None` where it was cut short when it was recorded and would have gone on.
        """
        text, finish, tokens = self.reply, self.finish, self.completion_tokens
        if max_tokens > self.reach:
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


def draw_key(model: str, prompt: str, temperature: float, index: int, extra: str) -> str:
    """What names a draw: everything that was asked but the limit of its length."""
    return content_hash([model, prompt, float(temperature), index, extra])


def prompt_hash(messages: Sequence[Message]) -> str:
    """Of the messages, without what no two runs of a program share, as in the hash of a call."""
    return content_hash([[message.role, steady_text(message.content)] for message in messages])


def extra_of(sampling: Sampling) -> str:
    """The hash of what a call asks besides a text; empty where it asks nothing."""
    asked: dict[str, object] = {"logprobs": sampling.logprobs, "schema": sampling.schema}
    if sampling.stop:  # it came later: old recordings keep their keys
        asked["stop"] = list(sampling.stop)
    return content_hash(asked) if any(asked.values()) else ""


def read_recording(path: Path) -> Iterator[RecordedReply]:
    """The draws of a file of JSON lines, `.gz` or plain.

    Raises:
        UsageError: There is no such file.
        StorageError: A line of it is no draw.
    """
    try:
        raw = path.read_bytes()
        text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError) as fault:
        raise UsageError(f"the recording {str(path)!r} cannot be read: {fault}") from fault
    for number, line in enumerate(text.splitlines(), 1):
        try:
            yield from_plain(RecordedReply, json.loads(line))
        except (ValueError, TypeError) as fault:
            raise StorageError(f"line {number} of {str(path)!r} is no recorded reply: {fault}") from fault


def write_recording(path: Path, draws: Iterable[RecordedReply]) -> int:
    """Write draws as JSON lines, sorted, packed where the name ends in `.gz`: same draws, same bytes.

    Returns:
        How many there are; of several of one key and reach the first is kept.
    """
    kept: dict[tuple[str, float], RecordedReply] = {}
    for draw in draws:
        kept.setdefault((draw.key, draw.reach), draw)
    ordered = sorted(
        kept.values(), key=lambda d: (d.dataset, d.problem, d.prompt, d.temperature, d.index, d.key, d.reach)
    )
    lines = "".join(json.dumps(to_plain(draw)) + "\n" for draw in ordered).encode("ascii")
    write_atomically(path, gzip.compress(lines, mtime=0) if path.suffix == ".gz" else lines)
    return len(kept)


def draws_in(folder: Path, problems: Iterable[Problem]) -> Iterator[RecordedReply]:
    """The draws of a folder of replies: of a pool, or as runs keep theirs, with their prompts.

    Args:
        folder: Holds one JSON file for each, also in folders.
        problems: Those that the prompts may be of; a prompt is of the one whose statement it holds.

    Raises:
        StorageError: A file is no recorded reply.
    """
    known = sorted(problems, key=lambda problem: -len(problem.statement))
    for path in sorted(folder.rglob("*.json")):
        if path.name.endswith(".fault.json"):
            continue
        try:
            entry = json.loads(path.read_bytes())
            if "reply" not in entry or "messages" not in entry:
                yield from_plain(RecordedReply, entry)
                continue
            draw = _of_run(entry, known)
        except (ValueError, TypeError, KeyError) as fault:
            raise StorageError(f"{str(path)!r} is no recorded reply: {fault!r}") from fault
        if draw is not None:
            yield draw


def _of_run(entry: Mapping[str, Any], problems: Sequence[Problem]) -> RecordedReply | None:
    messages = [Message(**message) for message in entry["messages"]]
    sampling, reply = Sampling(**entry["sampling"]), entry["reply"]
    asked = "\n".join(message.content for message in messages)
    problem = next((p for p in problems if p.statement.strip() in asked), None)
    if problem is None or sampling.max_tokens == 0:  # of another set; or a prompt that was only counted
        return None
    return draw_of(problem, entry["model"], messages, sampling, Reply(**{**reply, "logprobs": ()}))


def draw_of(
    problem: Problem, model: str, messages: Sequence[Message], sampling: Sampling, reply: Reply
) -> RecordedReply:
    """A reply as a draw of a task."""
    return RecordedReply(
        dataset=problem.dataset,
        problem=problem.id,
        model=model,
        prompt=prompt_hash(messages),
        call=call_hash(model, messages, sampling),
        temperature=float(sampling.temperature),
        max_tokens=sampling.max_tokens,
        index=sampling.index,
        extra=extra_of(sampling),
        reply=reply.text,
        finish=reply.finish,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        seconds=round(reply.seconds, 3),
    )

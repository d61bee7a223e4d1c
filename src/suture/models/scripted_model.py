"""A model for tests and demos that returns the entries of a script in order."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from suture import errors
from suture.core.safe_files import read_text_file
from suture.errors import ModelError, UsageError
from suture.models.chat_model import FinishReason, Message, Reply, Sampling
from suture.models.thinking import separate_thinking
from suture.models.token_counting import prompt_token_upper_bound, token_upper_bound
from suture.models.tuning import SCRIPTED_BYTES_PER_TOKEN

SCRIPTABLE_ERRORS: Mapping[str, type[errors.SutureError]] = {
    error.__name__: error
    for error in (
        errors.ContextTooLong,
        errors.MalformedReply,
        errors.ModelAuthError,
        errors.ModelError,
        errors.ModelRateLimited,
        errors.ModelTimeout,
    )
}
"""Errors that a script may raise, by class name."""

MAX_SCRIPT_BYTES = 16 * 2**20
"""Limit of a script file, so that a wrong path does not fill the memory."""
SCRIPT_REMEDY = "docs/models.md shows what a script is"


class ScriptExhausted(ModelError):
    """A scripted model was called more often than its script has entries."""


@dataclass(frozen=True, kw_only=True)
class ScriptedCall:
    """The arguments of one call to a scripted model."""

    messages: tuple[Message, ...]
    sampling: Sampling


class ScriptedModel:
    """Returns scripted replies and records its calls; safe for concurrent use.

    Args:
        replies: In order: a string, a `Reply`, or an exception to raise.
        repeat_last: Whether the last entry answers all further calls.
    """

    def __init__(
        self,
        replies: Sequence[str | Exception | Reply],
        *,
        name: str = "scripted:replies",
        repeat_last: bool = False,
    ) -> None:
        self.name = name
        self.calls: list[ScriptedCall] = []
        self._replies = tuple(replies)
        self._repeat_last = repeat_last
        self._lock = threading.Lock()

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Return the next entry of the script; see `Model.complete`.

        Raises:
            ScriptExhausted: The script has no more entries.
            Exception: The entry is an exception.
        """
        with self._lock:
            position = len(self.calls)
            self.calls.append(ScriptedCall(messages=tuple(messages), sampling=sampling))
        if position < len(self._replies):
            entry = self._replies[position]
        elif self._repeat_last and self._replies:
            entry = self._replies[-1]
        else:
            raise ScriptExhausted(
                f"{self.name!r} was asked for reply {position + 1}, but the length of its script is "
                f"{len(self._replies)}",
                remedy="add replies to the script, or `repeat: true` to its last one",
            )
        if isinstance(entry, Exception):
            raise entry
        if isinstance(entry, Reply):
            return separate_thinking(replace(entry, model=self.name))
        reply = Reply(
            text=entry,
            prompt_tokens=prompt_token_upper_bound(messages) // SCRIPTED_BYTES_PER_TOKEN,
            completion_tokens=token_upper_bound(entry) // SCRIPTED_BYTES_PER_TOKEN,
            model=self.name,
        )
        return separate_thinking(reply)

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""


def open_script(name: str) -> ScriptedModel:
    """Return the model that `scripted:NAME` means.

    Args:
        name: A YAML or JSON file with a list, or the name of a packaged script such as `example`. An entry is a string
            or a mapping: `{text: ..., finish: stop|length|other, repeat: true}` or `{raise: ModelTimeout, message:
            ...}`. With `repeat` the last entry answers all further calls.

    Raises:
        UsageError: The file cannot be read or is not such a list.
    """
    entries = _read_entries(name)
    if not isinstance(entries, list) or not entries:
        raise UsageError(f"the script {name!r} is not a list of replies", remedy="write a YAML or JSON list")
    replies = [_parse_entry(entry, f"entry {number} of {name!r}") for number, entry in enumerate(entries, 1)]
    repeat_last = isinstance(entries[-1], dict) and bool(entries[-1].get("repeat", False))
    return ScriptedModel(replies, name=f"scripted:{name}", repeat_last=repeat_last)


def _read_entries(name: str) -> Any:
    packaged = resources.files("suture.models") / "scripts" / f"{name}.yaml"
    if "/" not in name and packaged.is_file():
        text = packaged.read_text("utf-8")
    else:
        text = read_text_file(Path(name), MAX_SCRIPT_BYTES, "the script")
    if name.endswith(".json"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as fault:
            raise UsageError(f"the script {name!r} is not JSON: {fault}", remedy=SCRIPT_REMEDY) from fault
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as fault:  # ValueError: an invalid date
        raise UsageError(f"the script {name!r} is not YAML: {fault}", remedy=SCRIPT_REMEDY) from fault


def _parse_entry(entry: Any, position: str) -> str | Exception | Reply:
    """Return one entry of a script: a string, an exception or a reply."""
    if isinstance(entry, str):
        return entry
    if not isinstance(entry, dict):
        raise UsageError(f"{position} is neither a text nor a mapping", remedy=SCRIPT_REMEDY)
    unknown = entry.keys() - {"text", "finish", "repeat", "raise", "message"}
    if unknown:
        raise UsageError(f"{position} has unknown keys {sorted(map(str, unknown))!r}", remedy=SCRIPT_REMEDY)
    if "raise" in entry:
        error_class = SCRIPTABLE_ERRORS.get(entry["raise"])
        if error_class is None:
            raise UsageError(
                f"{position} raises {entry['raise']!r}", remedy=f"one of {', '.join(SCRIPTABLE_ERRORS)}"
            )
        return error_class(str(entry.get("message") or "raised by the script"))
    finish: FinishReason = entry.get("finish", "stop")
    if not isinstance(entry.get("text"), str) or finish not in get_args(FinishReason):
        raise UsageError(
            f"{position} needs a `text`, and a `finish` of {', '.join(get_args(FinishReason))}",
            remedy=SCRIPT_REMEDY,
        )
    text = entry["text"]
    return Reply(
        text=text, finish=finish, completion_tokens=token_upper_bound(text) // SCRIPTED_BYTES_PER_TOKEN
    )

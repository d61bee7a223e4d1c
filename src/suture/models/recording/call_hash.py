"""What names a call: model, messages and sampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from suture.core.ledger import steady_text
from suture.core.records import content_hash
from suture.models.seam import Message, Sampling

FIRST_FIELDS = ("temperature", "max_tokens", "index")
"""Of a sampling. Others came later; they name a call only where they are used, so that old hashes stay."""


def call_hash(model: str, messages: Sequence[Message], sampling: Sampling) -> str:
    """Name a call by what was asked of whom: model, messages and sampling, the index included.

    Prompts that differ only in what no two runs of a program share (see `steady_text`), such as the
    duration that pytest prints, are the same call, so that a replay finds it again.
    """
    call = call_as_plain(model, messages, sampling)
    for message in call["messages"]:
        message["content"] = steady_text(message["content"])
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

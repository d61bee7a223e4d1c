"""Parameters that a server refuses, learnt from its errors: each is dropped, and the call is sent again.

No table of models can be complete: servers differ, and the same server changes with each model. A refused request
costs nothing. What was learnt is remembered for the model in this process.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from suture.models.chat_model import RequestParameter
from suture.models.tuning import MAX_SCANNED_CHARS, MIN_REPLY_LIMIT_TOKENS

REFUSING_STATUSES = (400, 404, 405, 422, 500, 501)
"""Statuses of a refused parameter. OpenRouter says 404 if no endpoint has a feature, llama.cpp's server 500 if a
chat template refuses a role."""
NAMES: Mapping[RequestParameter, re.Pattern[str]] = {
    "temperature": re.compile(r"\btemperature\b|\btop_p\b"),
    "seed": re.compile(r"\bseed\b"),
    "stop": re.compile(r"\bstop(?:_sequences?|Sequences)?\b(?!\s*reason)"),
    "logprobs": re.compile(r"\b(?:top_)?logprobs\b"),
    "response_format": re.compile(
        r"response_format|json_schema|output_format|responseSchema|response_schema|response_mime_type|grammar"
        r"|structured outputs?|tool_choice forces"
    ),
    "tools": re.compile(
        r"\btools?\b(?!_choice forces)|enable-auto-tool-choice|function calling|function declarations?"
    ),
    "system_role": re.compile(
        r"system (?:role|message|instruction|prompt)|role:? ?['\"`]?system|['\"`]system['\"`]|developer instruction"
        r"|roles must alternate",
        re.IGNORECASE,
    ),
    "stream_options": re.compile(r"stream_options|include_usage"),
    "max_tokens": re.compile(r"\bmax_(?:completion_)?tokens\b"),
    "reasoning_effort": re.compile(r"reasoning[._]effort|\beffort\b|thinking_level|thinking_budget"),
    "chat_completions": re.compile(
        r"v1/responses|responses api|not a chat model|not supported in the v1/chat/completions", re.IGNORECASE
    ),
}
"""How errors name what they refuse."""
REFUSALS = re.compile(
    r"unsupported|not support|n[o']t (?:be )?(?:accept|allow|permit|available|enabled|implement|valid)|unavailable"
    r"|unrecogni[sz]ed|unknown|unexpected|extra (?:inputs|fields?|_forbidden)|extra_forbidden|forbidden|deprecated"
    r"|no longer|invalid|incompatible|no endpoints? found|requires? |must |only |can(?:no|')t|use 'max|not a chat"
    r"|should be|out of range|less than|does not",
    re.IGNORECASE,
)
"""What an error says of something that it refuses."""
TOKEN_LIMIT = re.compile(r"\bmax_?(?:completion_|output_)?tokens\b|max_output_tokens|maxOutputTokens")
INTEGER = re.compile(r"(?<![\w.])\d[\d,]*(?![\w.]*\d)")


@dataclass
class LearnedRefusals:
    """What one model's server is known to refuse.

    Attributes:
        parameters: What it refuses; for `max_tokens` that name of the limit, for `chat_completions` that protocol.
        max_reply_tokens: The longest reply that may be requested, in tokens; `None` if no limit was met.
    """

    parameters: set[RequestParameter] = field(default_factory=set)
    max_reply_tokens: int | None = None


_learned: dict[tuple[str, str], LearnedRefusals] = {}
_lock = threading.Lock()


def learned_refusals(address: str, model: str) -> LearnedRefusals:
    """Return what is known in this process about a model at an address; callers add to it."""
    with _lock:
        return _learned.setdefault((address, model), LearnedRefusals())


def forget_refusals() -> None:
    """Forget everything, as a new process does."""
    with _lock:
        _learned.clear()


def find_refused_parameter(
    status: int, text: str, named: str, sent: Collection[RequestParameter]
) -> RequestParameter | None:
    """Return the parameter of a request that an error refuses, or `None`.

    Args:
        status: The HTTP status.
        text: The error's message and body.
        named: The parameter that the body names by itself, as OpenAI's `param` does; else empty.
        sent: The parameters that the request had.
    """
    if status not in REFUSING_STATUSES:
        return None
    for where in filter(None, (named, text)):
        for parameter, pattern in NAMES.items():
            if parameter in sent and pattern.search(where) and REFUSALS.search(text):
                return parameter
    return None


def find_reply_limit(status: int, text: str, max_tokens: int) -> int | None:
    """Return the longest reply in tokens that an error allows, if it says that `max_tokens` is too many."""
    if status not in (400, 422) or not TOKEN_LIMIT.search(text):
        return None
    numbers = [int(number.replace(",", "")) for number in INTEGER.findall(text)]
    limits = [
        number for number in numbers if MIN_REPLY_LIMIT_TOKENS <= number < max_tokens and number != status
    ]
    # The number that was sent is usually quoted, too; the largest below it is the limit.
    limit = max(limits, default=None)
    return limit - 1 if limit and "exclusive" in text else limit


def describe_error(fault: BaseException) -> tuple[str, str]:
    """Return `(text, named parameter)` of a vendor's exception and its causes."""
    texts, named = [], ""
    cause: BaseException | None = fault
    while cause is not None:
        body: Any = getattr(cause, "body", None) or getattr(cause, "details", None)
        texts.append(f"{cause} {body or ''}")
        inner = body.get("error", body) if isinstance(body, Mapping) else {}
        named = named or str((inner.get("param") if isinstance(inner, Mapping) else "") or "")
        cause = cause.__cause__
    return " ".join(texts)[:MAX_SCANNED_CHARS], named

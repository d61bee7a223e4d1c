"""Mapping of vendors' exceptions to ours, with what users read about them."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from suture.errors import ModelError, ModelNotFound, ModelRateLimited
from suture.models.providers.connections import mask_credentials
from suture.models.providers.error_classification import (
    classify_provider_error,
    find_connection_failure,
    find_guard_refusal,
    find_status,
    walk_causes,
)
from suture.models.providers.error_table import (
    CHECK_ADDRESS,
    CHECK_NETWORK,
    ERROR_TABLE,
    ErrorRule,
    ProviderErrorKind,
    describe_error,
)
from suture.models.tuning import MAX_RETRY_AFTER_S

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0


RETRY_DELAY = re.compile(r"retryDelay\W{1,6}(\d+(?:\.\d+)?)s")
"""Matches the wait in an error of Gemini, which sends no such header."""


def read_retry_after_s(fault: Exception, now_s: float | None = None) -> float | None:
    """Return the seconds to wait, from a vendor's exception, or `None` if it does not say.

    The headers are `retry-after-ms`, and `retry-after` in seconds or as a date (RFC 9110, section 10.2.3).
    `now_s` is the current time in seconds since the epoch; the system's by default.
    """
    responses = (getattr(cause, "response", None) for cause in walk_causes(fault))
    headers: Mapping[str, str] = next(
        (found for each in responses if (found := getattr(each, "headers", None))), {}
    )
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return _bounded(float(headers.get(name, "")) * unit_s)
        except ValueError:
            continue
    try:
        date_s = parsedate_to_datetime(headers.get("retry-after", "")).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        delay = RETRY_DELAY.search(describe_error(fault)[0])
        return _bounded(float(delay[1])) if delay else None
    return _bounded(date_s - (time.time() if now_s is None else now_s))


def _bounded(seconds: float) -> float | None:
    """Return a wait within the bounds, or `None` for a number that is not finite."""
    return None if math.isnan(seconds) else min(MAX_RETRY_AFTER_S, max(0.0, seconds))


def format_wait(seconds: float, now_s: float | None = None) -> str:
    """Return a wait for people: its length, and from an hour on also the date and time of its end."""
    if seconds < 2 * MINUTE_S:  # up to here, rounding to minutes would be too coarse
        return f"{math.ceil(seconds)} s"
    if seconds < HOUR_S:
        return f"{math.ceil(seconds / MINUTE_S)} min"
    end = time.gmtime((time.time() if now_s is None else now_s) + seconds)
    days, hours = int(seconds // DAY_S), seconds % DAY_S / HOUR_S
    length = f"{hours:.1f} h" if days == 0 else f"{days} d {hours:.0f} h"
    return f"{length}, until {time.strftime('%Y-%m-%d %H:%M', end)} UTC"


MAX_QUOTED_CHARS = 300
"""Length of a vendor's message that is shown. Chosen by judgement; not measured."""
MAX_SHOWN_KEY_CHARS = 8
"""A prefix of this length shows only the kind of a key (`sk-proj-`); longer prefixes are masked."""
PROTOCOLS = {"anthropic": "Anthropic", "ollama": "Ollama", "google": "Gemini", "bedrock": "Bedrock"}
"""Provider -> protocol; all other providers speak OpenAI's."""


@dataclass(frozen=True, kw_only=True)
class ModelTarget:
    """The model that was called, for messages about a fault.

    Attributes:
        address: The server's address; empty if unknown.
        secret: The key, which some servers echo; it is masked.
        key_variable: Where users set the key.
        has_own_address: Whether the user set the address.
    """

    name: str
    address: str = ""
    secret: str = ""
    key_variable: str = ""
    has_own_address: bool = False

    def remedy(self, rule: ErrorRule) -> str:
        """Return what the user can do about an error; only an address that the user set is to be checked."""
        parts = [rule.remedy]
        if rule.doubts_address:
            parts.append(CHECK_ADDRESS if self.has_own_address else "" if rule.remedy else CHECK_NETWORK)
        protocol = PROTOCOLS.get(self.name.partition(":")[0], "OpenAI")
        text = "; ".join(filter(None, parts)).replace("{protocol}", protocol)
        return text.replace("{key}", self.key_variable or "the provider's key")

    def masked(self, text: str) -> str:
        """Return a string without the key and without credentials in URLs."""
        # A message may quote a key with non-ASCII characters as Python escapes it, without the quotes.
        for spelling in (self.secret, ascii(self.secret)[1:-1]) if self.secret else ():
            text = text.replace(spelling, "***")
        # A quoted answer may have been cut in the middle of the key.
        for length in range(len(self.secret) - 1, MAX_SHOWN_KEY_CHARS, -1):
            text = text.replace(self.secret[:length], "***")
        return mask_credentials(text)


def map_provider_error(
    fault: Exception, target: ModelTarget, kind: ProviderErrorKind | None = None
) -> ModelError:
    """Return our exception for a vendor's; `kind` is its kind if that is known already."""
    if isinstance(fault, ModelError):
        return fault
    kind = kind or classify_provider_error(fault)
    rule = ERROR_TABLE[kind]
    status = find_status(fault)
    status_text = f" (HTTP {status})" if status > 0 else ""
    detail = " ".join(target.masked(_describe_fault(fault, target, kind)).split())[:MAX_QUOTED_CHARS]
    detail = detail or type(fault).__name__
    if issubclass(rule.error, ModelNotFound) and target.address:
        detail = f"{target.address}: {detail}"
    wait_s = read_retry_after_s(fault)
    if wait_s and kind in ("rate_limit", "quota", "overloaded"):
        detail += f"; it asks to wait {format_wait(wait_s)}"
    message = f"{target.name!r} {rule.sentence}{status_text}: {detail}"
    remedy = target.remedy(rule)
    if rule.error is ModelRateLimited:
        error: ModelError = ModelRateLimited(message, retry_after_s=wait_s, remedy=remedy)
    else:
        error = rule.error(message, remedy=remedy)
    error.is_transient = rule.retry
    return error


def _describe_fault(fault: Exception, target: ModelTarget, kind: ProviderErrorKind) -> str:
    """Return the most precise message: the SDK's own is often just "Connection error."."""
    refusal = find_guard_refusal(fault)
    if refusal is not None:
        return str(refusal)
    if kind == "bad_header":
        return "it is not shown here"  # the library's message contains the key itself
    if not find_status(fault) and (connection_failure := find_connection_failure(fault)) is not None:
        _, message = connection_failure
        return f"{target.address}: {message}" if target.address else message
    # OpenAI's and Anthropic's SDKs say "Connection error." here; the innermost cause says what happened.
    if any(cls.__name__ == "APIConnectionError" for cls in type(fault).__mro__):
        return [text for cause in walk_causes(fault) if (text := str(cause))][-1]
    return str(fault)

"""What a vendor's exception means in our words.

Each SDK has a tree of its own, and none of them is imported here: what they share is an HTTP status, a
`response` with headers, and telling class names.
"""

from __future__ import annotations

from suture.errors import (
    ContextTooLong,
    MalformedReply,
    ModelAuthError,
    ModelError,
    ModelRateLimited,
    ModelTimeout,
)

__all__ = ["as_model_error"]

MAX_QUOTED_CHARS = 300
UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError)
"""What SDKs raise when the body is not what the wire format promises."""


def as_model_error(fault: Exception, name: str, *, secret: str = "") -> ModelError:
    """Turn a vendor's exception into ours.

    Args:
        fault: What the SDK raised.
        name: The model, as `provider:model`.
        secret: The key, which some servers echo; it is masked.
    """
    if isinstance(fault, ModelError):
        return fault
    said = str(fault).replace(secret, "***") if secret else str(fault)
    said = " ".join(said.split())[:MAX_QUOTED_CHARS] or type(fault).__name__
    kinds = {cls.__name__ for cls in type(fault).__mro__}
    status = getattr(fault, "status_code", None)
    if isinstance(status, int):
        return _from_status(status, said, name, fault, overflow="ContextOverflowError" in kinds)
    if "ContextOverflowError" in kinds:
        return _too_long(name, said)
    if isinstance(fault, TimeoutError) or any("Timeout" in kind for kind in kinds):
        return ModelTimeout(f"{name!r} did not answer in time", remedy="raise model.timeout_s")
    if isinstance(fault, OSError) or kinds & {"APIConnectionError", "TransportError", "ConnectError"}:
        return ModelError(
            f"the connection to {name!r} failed: {said}",
            remedy="check that the server runs, and model.base_url where you set it",
        )
    if isinstance(fault, UNREADABLE):
        return MalformedReply(f"{name!r} answered with something unreadable: {said}")
    return ModelError(f"{name!r} failed: {said}")


def _from_status(status: int, said: str, name: str, fault: Exception, *, overflow: bool) -> ModelError:
    if overflow or (status in (400, 413) and _is_about_context(said)):
        return _too_long(name, said)
    if status in (401, 403):
        return ModelAuthError(
            f"{name!r} refused the key (HTTP {status}): {said}", remedy="set the provider's key anew"
        )
    if status == 404:
        return ModelError(
            f"{name!r} is not there (HTTP 404): {said}", remedy="check model.name and model.base_url"
        )
    if status in (408, 504):
        return ModelTimeout(f"{name!r} did not answer in time (HTTP {status})")
    if status == 429:
        return ModelRateLimited(
            f"{name!r} asks to slow down: {said}",
            retry_after_s=_retry_after_s(fault),
            remedy="wait, or check the account's quota",
        )
    return ModelError(f"{name!r} failed with HTTP {status}: {said}")


def _too_long(name: str, said: str) -> ContextTooLong:
    return ContextTooLong(
        f"the prompt does not fit into the context of {name!r}: {said}",
        remedy="raise model.context_tokens, or give less",
    )


def _is_about_context(said: str) -> bool:
    text = said.lower()
    return "context" in text and any(word in text for word in ("exceed", "length", "window", "size"))


def _retry_after_s(fault: Exception) -> float | None:
    headers = getattr(getattr(fault, "response", None), "headers", None) or {}
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:  # absent, or an HTTP date
        return None

"""How long a provider asks us to wait."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime

__all__ = ["retry_after_s"]


def retry_after_s(fault: Exception, now_s: float | None = None) -> float | None:
    """Seconds to wait, from the headers of the response that a vendor's exception carries.

    Read are `retry-after-ms`, and `retry-after` as seconds or as a date (RFC 9110, section 10.2.3).

    Args:
        fault: The exception.
        now_s: The time now, in seconds since the epoch; the machine's where not given.

    Returns:
        Seconds, at least 0, or `None` where the provider did not say.
    """
    headers = getattr(getattr(fault, "response", None), "headers", None) or {}
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers.get(name, "")) * unit_s)
        except ValueError:
            continue
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, date.timestamp() - (time.time() if now_s is None else now_s))

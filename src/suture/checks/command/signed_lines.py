"""A report whose lines are signed with a run's secret: `SIGNATURE NUMBER JSON`, numbered from 0."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any


def verified_events(content: bytes, key: bytes) -> Iterator[dict[str, Any]]:
    """The events of a report up to the first line that does not verify.

    Args:
        content: The report.
        key: The run's secret.
    """
    for number, line in enumerate(content.split(b"\n")):
        signature, _, signed = line.partition(b" ")
        expected = hmac.new(key, signed, hashlib.sha256).hexdigest().encode()
        if not hmac.compare_digest(signature, expected) or not signed.startswith(b"%d " % number):
            return
        try:
            event = json.loads(signed.partition(b" ")[2])
        except (ValueError, RecursionError):
            return  # what shares a process with the writer may have changed what it writes
        if not isinstance(event, dict):
            return
        yield event

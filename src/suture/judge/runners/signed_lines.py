"""Verifying the lines of a report that are signed with a run's secret key.

A line is `SIGNATURE NUMBER JSON`, numbered from 0. Several processes of a run may write into one report. All but
the main process put their name before each line, sign with a key derived from the run's key, and number their
own lines.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterator
from typing import Any

SIGNATURE_RE = re.compile(rb"[0-9a-f]{64}")
PROCESS_NAME_RE = re.compile(rb"[a-z0-9]{1,20}(?:\.[0-9]{1,20})?")
"""Such as `gw0` for a worker of pytest-xdist, `gw0.123` for its fork with the id 123, and `123` for another fork."""


def verified_events(content: bytes, key: bytes) -> Iterator[dict[str, Any]]:
    """Yield the events of a report up to the first line that does not verify.

    Args:
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
            return  # code that shares the writer's process may have changed what it writes
        if not isinstance(event, dict):
            return
        yield event


def streams(content: bytes, key: bytes) -> dict[str, tuple[bytes, bytes]]:
    """Return process name -> (lines, key) of that process; the main process has an empty name."""
    lines_by_name: dict[bytes, list[bytes]] = {b"": []}
    for line in content.split(b"\n"):
        name, _, rest = line.partition(b" ")
        is_named = not SIGNATURE_RE.fullmatch(name) and PROCESS_NAME_RE.fullmatch(name)
        lines_by_name.setdefault(name if is_named else b"", []).append(rest if is_named else line)
    return {
        name.decode(): (b"\n".join(lines), _derive_key(key, name)) for name, lines in lines_by_name.items()
    }


def _derive_key(key: bytes, name: bytes) -> bytes:
    for part in name.split(b".") if name else ():
        key = hmac.digest(key, part, "sha256")
    return key

"""Verifying report lines that are signed with a run's secret: `SIGNATURE NUMBER JSON`, numbered from 0.

Other processes of the run put their name before each line. Each signs with a key derived from the run's key
and numbers its own lines.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterator
from typing import Any

SIGNATURE = re.compile(rb"[0-9a-f]{64}")
NAME = re.compile(rb"[a-z0-9]{1,20}(?:\.[0-9]{1,20})?")


def verified_events(content: bytes, key: bytes) -> Iterator[dict[str, Any]]:
    """Yield the events of a report up to the first line that does not verify.

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
            return  # code that shares the writer's process may have changed what it writes
        if not isinstance(event, dict):
            return
        yield event


def streams(content: bytes, key: bytes) -> dict[str, tuple[bytes, bytes]]:
    """Return process name -> the lines of that process and its key; the main process has an empty name.

    Args:
        content: The report.
        key: The run's secret.
    """
    found: dict[bytes, list[bytes]] = {b"": []}
    for line in content.split(b"\n"):
        name, _, rest = line.partition(b" ")
        is_named = not SIGNATURE.fullmatch(name) and NAME.fullmatch(name)
        found.setdefault(name if is_named else b"", []).append(rest if is_named else line)
    return {name.decode(): (b"\n".join(lines), _key(key, name)) for name, lines in found.items()}


def _key(key: bytes, name: bytes) -> bytes:
    for part in name.split(b".") if name else ():
        key = hmac.digest(key, part, "sha256")
    return key

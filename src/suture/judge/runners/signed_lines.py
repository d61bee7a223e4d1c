"""Verifying the lines of a report that are signed with a run's secret key.

A line is `SIGNATURE NUMBER JSON`, numbered from 0. After each line the writer replaces its key by the next one,
which cannot be reversed. Code under test that finds the key can therefore add lines, but can neither change
nor remove what was reported before, such as that it looked for the key.

Several processes of a run may write into one report. All but the main process put their name before each line:
`LABEL.N` or `PARENT.LABEL.N`. Their first key is derived from the label and the key that their parent had after
N lines, and they number their own lines.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Iterator
from typing import Any

SIGNATURE_RE = re.compile(rb"[0-9a-f]{64}")
PROCESS_NAME_RE = re.compile(rb"[a-z0-9]{1,20}\.[0-9]{1,9}(?:\.[0-9]{1,20}\.[0-9]{1,9})?")
"""Such as `gw0.1` for a worker of pytest-xdist, `gw0.1.123.7` for its fork with the id 123, and `123.7` for a fork
of the main process."""
NEXT_KEY = b"next"
"""What the writer signs to get its next key."""


def verified_events(content: bytes, key: bytes) -> Iterator[dict[str, Any]]:
    """Yield the events of a report up to the first line that does not verify.

    Args:
        key: The key of the first line.
    """
    for number, line in enumerate(content.split(b"\n")):
        signature, _, signed = line.partition(b" ")
        expected = hmac.digest(key, signed, "sha256").hex().encode()
        key = next_key(key)
        if not hmac.compare_digest(signature, expected) or not signed.startswith(b"%d " % number):
            return
        try:
            event = json.loads(signed.partition(b" ")[2])
        except (ValueError, RecursionError):
            return  # code that shares the writer's process may have changed what it writes
        if not isinstance(event, dict):
            return
        yield event


def next_key(key: bytes) -> bytes:
    """Return the key of the line after the one that a key signs."""
    return hmac.digest(key, NEXT_KEY, "sha256")


def streams(content: bytes, key: bytes) -> dict[str, tuple[bytes, bytes]]:
    """Return process name -> (lines, first key) of that process; the main process has an empty name."""
    lines_by_name: dict[bytes, list[bytes]] = {b"": []}
    for line in content.split(b"\n"):
        name, _, rest = line.partition(b" ")
        is_named = not SIGNATURE_RE.fullmatch(name) and PROCESS_NAME_RE.fullmatch(name)
        lines_by_name.setdefault(name if is_named else b"", []).append(rest if is_named else line)
    keys = ProcessKeys(key, content.count(b"\n"))
    return {name.decode(): (b"\n".join(lines), keys.first(name)) for name, lines in lines_by_name.items()}


class ProcessKeys:
    """The keys of all processes of a run.

    Args:
        key: The first key of the main process.
        max_lines: No process has written more lines than this.
    """

    def __init__(self, key: bytes, max_lines: int) -> None:
        self._max_lines = max_lines
        self._keys = {b"": [key]}
        """Process name -> the keys of its lines, as far as they were needed."""

    def first(self, name: bytes) -> bytes:
        """Return the key of a process's first line."""
        if name not in self._keys:
            *parents, label, number = name.split(b".")
            parent = b".".join(parents)
            self.first(parent)
            keys = self._keys[parent]
            wanted = min(int(number), self._max_lines)
            while len(keys) <= wanted:
                keys.append(next_key(keys[-1]))
            self._keys[name] = [hmac.digest(keys[wanted], label, "sha256")]
        return self._keys[name][0]

"""How many processes the kernel has ended for want of memory, as control groups tell; for both sides."""

from __future__ import annotations


def oom_kills(events: bytes) -> int:
    """The count in `memory.events` of version 2, or in `memory.oom_control` of version 1: `oom_kill N`."""
    words = events.split()
    return int(words[words.index(b"oom_kill") + 1]) if b"oom_kill" in words else 0

"""Locks that pip reads: a pinned version a line, perhaps with hashes below it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from suture.packages.growing.grower import newline_of
from suture.safety import plain_name

PIN = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*==\s*(?P<version>\d[\w.!+-]*)")
FOLDED = re.compile(r"\\\r?\n\s+--hash")


def pins_in(text: str) -> dict[str, str]:
    """Plain name -> version."""
    found = (PIN.match(line) for line in text.splitlines())
    return {plain_name(match["name"]): match["version"] for match in found if match}


def is_pinned(text: str) -> bool:
    """Whether all that a text asks for is pinned, as a program writes it, and not a person."""
    lines = re.sub(r"\\\r?\n", " ", text).splitlines()
    asks = [line for line in lines if line.strip() and not line.lstrip().startswith(("#", "-"))]
    return bool(asks) and all(map(PIN.match, asks))


def with_pins(text: str, lines: Sequence[str]) -> str:
    """A lock with those lines that it lacks, each before the first name that comes after it.

    Args:
        text: The lock.
        lines: `name==version --hash=sha256:...`, each.
    """
    known, newline = pins_in(text), newline_of(text)
    folded, hashed = bool(FOLDED.search(text)), "--hash" in text or not known
    for line in lines:
        pin, _, hashes = line.partition(" ")
        if plain_name(pin.partition("==")[0]) in known:
            continue
        entry = pin if not hashed else f"{pin} \\{newline}    {hashes}" if folded else line
        text = _inserted(text, pin, entry + newline, newline)
    return text


def _inserted(text: str, pin: str, entry: str, newline: str) -> str:
    at = 0
    for line in text.splitlines(keepends=True):
        match = PIN.match(line)
        if match and plain_name(match["name"]) > plain_name(pin.partition("==")[0]):
            return text[:at] + entry + text[at:]
        at += len(line)
    return text + ("" if not text or text.endswith("\n") else newline) + entry

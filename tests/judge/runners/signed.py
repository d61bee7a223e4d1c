"""Writing a report as the plugin of the test process signs it."""

from __future__ import annotations

import hashlib
import hmac
import json

from suture.judge.runners.signed_lines import next_key


def sign_line(key: bytes, number: int, text: str) -> bytes:
    """Return the line with a number; `key` is the key of the first line."""
    for _ in range(number):
        key = next_key(key)
    signed = f"{number} {text}".encode()
    return hmac.new(key, signed, hashlib.sha256).hexdigest().encode() + b" " + signed + b"\n"


def sign_event(key: bytes, number: int, **event: object) -> bytes:
    """Return the line of an event."""
    return sign_line(key, number, json.dumps(event))

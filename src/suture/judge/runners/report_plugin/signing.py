"""Writing the report in lines that are signed one by one.

Each line has its own key. The next key is derived from it, and it is forgotten at once. So code under test
that finds the key can neither change nor remove what was reported before.

What this module uses is bound when it is imported, before any code under test. Serialising needs no function of
`json` that Python code could replace.
"""

from __future__ import annotations

import builtins
import os
from _thread import allocate_lock
from hashlib import sha256
from os import write
from typing import Any

try:
    from _json import (
        encode_basestring_ascii as encode_text,
    )  # the compiled function, which nothing can change
except ImportError:  # not every Python has it
    from json.encoder import encode_basestring_ascii as encode_text

# The functions below use this copy, even if code changes the builtins. Type checkers expect a module.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]
BLOCK_BYTES = 64
"""Block size of SHA-256, which HMAC needs (RFC 2104)."""
OUTER, INNER = bytes(0x5C ^ byte for byte in range(256)), bytes(0x36 ^ byte for byte in range(256))
"""Translation tables that combine each byte of a key with HMAC's two constants."""
NEXT_KEY = b"next"
"""What is signed to get the key of the next line."""


def sign(key: bytes, message: bytes) -> bytes:
    """Return the HMAC-SHA256 of a message; the `hmac` module is Python code that could be replaced."""
    padded = key.ljust(BLOCK_BYTES, b"\0")
    inner = sha256(padded.translate(INNER) + message).digest()
    return sha256(padded.translate(OUTER) + inner).digest()


def encode(value: Any) -> str:
    """Return a value as JSON.

    Raises:
        TypeError: It is not made of dictionaries, lists, tuples, strings, numbers, booleans and `None`.
    """
    if isinstance(value, str):
        return encode_text(value)
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([encode(part) for part in value]) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join([f"{encode_text(key)}: {encode(part)}" for key, part in value.items()]) + "}"
    raise TypeError(f"a report cannot hold a {type(value).__name__}")


class SignedReport:
    """The lines of one process.

    Attributes:
        name: The name of the process in the report; empty for the main process.
        count: How many lines it has written.
    """

    def __init__(self, path: str, key: bytes, name: str) -> None:
        self.name = name
        self.count = 0
        self._key = key
        self._lock = allocate_lock()  # code under test may report from several threads
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, event: dict[str, Any]) -> None:
        """Append one line, in a single system call."""
        text = encode(event)
        with self._lock:
            line = f"{self.count} {text}".encode("ascii")
            prefix = f"{self.name} ".encode("ascii") if self.name else b""
            write(self._file, prefix + sign(self._key, line).hex().encode("ascii") + b" " + line + b"\n")
            self._advance()

    def derive(self, label: str) -> tuple[str, bytes]:
        """Return the name and the first key of another process, which depend on the lines so far."""
        name = f"{self.name}.{label}.{self.count}".lstrip(".")
        return name, sign(self._key, label.encode("ascii"))

    def become(self, name: str, key: bytes) -> None:
        """Continue as another process, with its own lines."""
        self.name, self._key, self.count = name, key, 0
        self._lock = allocate_lock()  # another thread may have held the old one when this process was forked

    def skip_to(self, count: int) -> None:
        """Continue after the lines that a child process has written in this process's name.

        Args:
            count: The number of lines; -1 if it is unknown, which makes all later lines fail to verify.
        """
        while self.count < count:
            self._advance()
        if count < 0:
            self.count = -1

    def _advance(self) -> None:
        self._key = sign(self._key, NEXT_KEY)
        self.count += 1

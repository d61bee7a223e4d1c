"""Runs one command in a copy of a project, and writes down which files it changed.

It is the program that the wall runs, on a bare interpreter and in the copy's folder; its order is JSON on
stdin. It prints one line of JSON that says how the command ended, then what the command printed. Nothing of
what it says is believed unread: the command runs as the same user (see `changes.py`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import select
import signal
import stat
import subprocess
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TICK_S = 0.2
"""Seconds between two looks at whether the command has ended."""
LINGER_S = 1.0
"""Seconds in which what a command left running may still print."""
CHUNK = 1 << 16


def main() -> None:
    """Run the command that stdin orders, and report how it ended and which files it changed."""
    order = json.loads(sys.stdin.buffer.read())
    before = digests(order["skip"])
    ending, said = carried_out(order)
    with open(order["report"], "wb") as report:
        report.write(changes(before, digests(order["skip"]), order))
    sys.stdout.buffer.write(json.dumps(ending).encode("ascii") + b"\n" + said)


def carried_out(order: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Run the command until it ends or its time is up; how it ended, and head and tail of what it said."""
    here = os.getcwd()
    added = {name: value.replace("{box}", here) for name, value in order["env"].items()}
    began = time.monotonic()
    try:
        process = subprocess.Popen(
            order["argv"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **added},
            start_new_session=True,
        )
    except OSError as fault:
        why = f"cannot start {order['argv'][0]!r}: {os.strerror(fault.errno or 0)}"
        return {"ended": "unstarted", "code": 127, "seconds": 0.0, "bytes": 0}, why.encode()
    assert process.stdout is not None
    kept = Kept(order["keep_bytes"])
    in_time = listen(process, process.stdout.fileno(), began + order["seconds"], kept)
    try:
        os.killpg(process.pid, signal.SIGKILL)  # what it left running ends with it
    except ProcessLookupError:
        pass
    code = process.wait()
    ending = {
        "ended": "exit" if in_time else "timeout",
        "code": code,
        "seconds": round(time.monotonic() - began, 3),
        "bytes": kept.total,
    }
    return ending, kept.text()


def listen(process: subprocess.Popen[bytes], handle: int, deadline: float, kept: Kept) -> bool:
    """Hear what a command says until it has ended; whether that was before its deadline."""
    silent, ended_at = False, None
    while True:
        now = time.monotonic()
        if process.poll() is not None:
            ended_at = ended_at or now
            if silent or now - ended_at > LINGER_S:
                return True
        elif now >= deadline:
            return False
        if silent:
            time.sleep(TICK_S / 4)
            continue
        ready, _, _ = select.select([handle], [], [], TICK_S)
        if ready:
            chunk = os.read(handle, CHUNK)
            kept.add(chunk)
            silent = not chunk
        elif ended_at is not None:
            return True


class Kept:
    """Head and tail of an output of any length."""

    def __init__(self, most: int) -> None:
        self.half = most // 2
        self.head, self.tail, self.total = b"", b"", 0

    def add(self, chunk: bytes) -> None:
        """Take what came next."""
        self.total += len(chunk)
        room = self.half - len(self.head)
        self.head += chunk[:room]
        self.tail = (self.tail + chunk[room:])[-self.half :]

    def text(self) -> bytes:
        """What is kept of it."""
        lost = self.total - len(self.head) - len(self.tail)
        cut = f"\n... {lost} bytes are cut ...\n".encode() if lost else b""
        return self.head + cut + self.tail


def digests(skip: list[str]) -> dict[str, bytes]:
    """Every regular file below this folder: path -> a digest of its content. No link is followed."""
    found = {}
    for folder, folders, names in os.walk("."):
        folders[:] = [name for name in folders if name not in skip]
        for name in names:
            path = os.path.join(folder, name)[2:]
            try:
                if stat.S_ISREG(os.lstat(path).st_mode):
                    found[path] = hashlib.sha256(content_of(path)).digest()
            except OSError:
                continue
    return found


def content_of(path: str) -> bytes:
    """What a file holds."""
    with open(path, "rb") as file:
        return file.read()


def changes(before: dict[str, bytes], after: dict[str, bytes], order: dict[str, Any]) -> bytes:
    """Files that are new or differ, as JSON: path and content, in base64.

    Where there is no wall, whatever names the copy's folder is renamed on its way out: sizes would not hold.
    """
    changed: list[list[str]] = []
    left_out, room = [], order["most_bytes"]
    for path in sorted(path for path, digest in after.items() if before.get(path) != digest):
        content = content_of(path)
        if len(content) > min(order["file_bytes"], room) or len(changed) >= order["most_files"]:
            left_out.append(path)
            continue
        room -= len(content)
        changed.append([path, base64.b64encode(content).decode("ascii")])
    gone = sorted(path for path in before if path not in after)
    most = order["most_files"]
    report = {"changed": changed, "deleted": gone[:most], "left_out": left_out[:most]}
    return json.dumps(report).encode("ascii")

"""Runs one command in a copy of a project, and reports which files it changed.

The sandbox runs this program on a bare interpreter in the copy's folder. Its instructions are JSON on stdin.
It prints one line of JSON that says how the command ended, then what the command printed. The host trusts
none of this, because the command runs as the same user (see `copy_run.py`).
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
"""Seconds between two checks whether the command has ended."""
LINGER_S = 1.0
"""Seconds in which processes that a command left running may still print."""
CHUNK = 1 << 16


def main() -> None:
    """Run the command, and report how it ended and which files it changed."""
    instructions = json.loads(sys.stdin.buffer.read())
    before = hash_files(instructions["skip"])
    ending, output = run_command(instructions)
    with open(instructions["report"], "wb") as report:
        report.write(encode_changes(before, hash_files(instructions["skip"]), instructions))
    sys.stdout.buffer.write(json.dumps(ending).encode("ascii") + b"\n" + output)


def run_command(instructions: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Run the command until it ends or times out; return `(how it ended, head and tail of its output)`."""
    folder = os.getcwd()
    variables = {name: value.replace("{box}", folder) for name, value in instructions["env"].items()}
    started_s = time.monotonic()
    try:
        process = subprocess.Popen(
            instructions["argv"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **variables},
            start_new_session=True,
        )
    except OSError as fault:
        message = f"cannot start {instructions['argv'][0]!r}: {os.strerror(fault.errno or 0)}"
        return {"ended": "not_started", "code": 127, "seconds": 0.0, "bytes": 0}, message.encode()
    assert process.stdout is not None
    output = OutputTail(instructions["keep_bytes"])
    in_time = read_output(process, process.stdout.fileno(), started_s + instructions["seconds"], output)
    try:
        os.killpg(process.pid, signal.SIGKILL)  # processes that it left running end with it
    except ProcessLookupError:
        pass
    code = process.wait()
    ending = {
        "ended": "exit" if in_time else "timeout",
        "code": code,
        "seconds": round(time.monotonic() - started_s, 3),
        "bytes": output.total,
    }
    return ending, output.text()


def read_output(
    process: subprocess.Popen[bytes], stdout_fd: int, deadline: float, output: OutputTail
) -> bool:
    """Read a command's output until it has ended; return whether that was before its deadline."""
    is_stdout_closed, ended_s = False, None
    while True:
        now = time.monotonic()
        if process.poll() is not None:
            ended_s = ended_s or now
            # A process that the command left running may hold its stdout open.
            if is_stdout_closed or now - ended_s > LINGER_S:
                return True
        elif now >= deadline:
            return False
        if is_stdout_closed:
            time.sleep(TICK_S / 4)
            continue
        readable, _, _ = select.select([stdout_fd], [], [], TICK_S)
        if readable:
            chunk = os.read(stdout_fd, CHUNK)
            output.add(chunk)
            is_stdout_closed = not chunk
        elif ended_s is not None:
            return True


class OutputTail:
    """Keeps the head and the tail of an output of any length."""

    def __init__(self, max_bytes: int) -> None:
        self.half = max_bytes // 2
        self.head, self.tail, self.total = b"", b"", 0

    def add(self, chunk: bytes) -> None:
        """Add the next bytes."""
        self.total += len(chunk)
        free_bytes = self.half - len(self.head)
        self.head += chunk[:free_bytes]
        self.tail = (self.tail + chunk[free_bytes:])[-self.half :]

    def text(self) -> bytes:
        """Return what was kept, with a line that marks the gap."""
        omitted = self.total - len(self.head) - len(self.tail)
        marker = f"\n... {omitted} bytes are cut ...\n".encode() if omitted else b""
        return self.head + marker + self.tail


def hash_files(skip: list[str]) -> dict[str, bytes]:
    """Return every regular file below this folder: path -> digest of its content. No link is followed."""
    digests = {}
    for folder, folders, names in os.walk("."):
        folders[:] = [name for name in folders if name not in skip]
        for name in names:
            path = os.path.join(folder, name)[2:]
            try:
                if stat.S_ISREG(os.lstat(path).st_mode):
                    digests[path] = hashlib.sha256(read_file(path)).digest()
            except OSError:
                continue
    return digests


def read_file(path: str) -> bytes:
    """Return the content of a file."""
    with open(path, "rb") as file:
        return file.read()


def encode_changes(before: dict[str, bytes], after: dict[str, bytes], instructions: dict[str, Any]) -> bytes:
    """Return the changes as JSON, with the new and different files as pairs of path and base64 content.

    Base64 is needed for `unsafe-subprocess`: it renames the copy's folder in everything that goes out, which
    would break lengths.
    """
    changed: list[list[str]] = []
    left_out: list[str] = []
    free_bytes, max_files = instructions["most_bytes"], instructions["most_files"]
    for path in sorted(path for path, digest in after.items() if before.get(path) != digest):
        content = read_file(path)
        if len(content) > min(instructions["file_bytes"], free_bytes) or len(changed) >= max_files:
            left_out.append(path)
            continue
        free_bytes -= len(content)
        changed.append([path, base64.b64encode(content).decode("ascii")])
    deleted = sorted(path for path in before if path not in after)
    report = {"changed": changed, "deleted": deleted[:max_files], "left_out": left_out[:max_files]}
    return json.dumps(report).encode("ascii")

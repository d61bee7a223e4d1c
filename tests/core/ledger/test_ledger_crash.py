"""Ledgers after real kills and on a full disk, each in a child process."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from suture.core.ledger import Ledger, RawPayload, read_ledger

WRITER = """
import sys
from pathlib import Path
from suture.core.ledger import Ledger, RawPayload
with Ledger(Path(sys.argv[1])) as ledger:
    while True:
        event = ledger.append(RawPayload(kind="k", data={"text": "x" * int(sys.argv[2])}))
        print(event.seq, flush=True)
"""

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from suture.errors import StorageError
from suture.core.ledger import Ledger, RawPayload, RunFolder
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder = RunFolder(Path(sys.argv[1]))
with Ledger(folder.ledger_path) as ledger:
    big = RawPayload(kind="big", data={"text": "x" * 1000})
    ledger.append(RawPayload(kind="before", data=big.data))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, resource.RLIM_INFINITY))
    for write in (lambda: ledger.append(big), lambda: folder.save_blob(b"x" * 2000)):
        try:
            write()
        except StorageError as fault:
            print(fault)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    ledger.append(RawPayload(kind="after"))
"""


@pytest.mark.parametrize("size", [10, 20_000])
def test_a_kill_loses_no_acknowledged_event(tmp_path: Path, size: int) -> None:
    path = tmp_path / "l"
    rng = random.Random(size)
    last = -1
    for kills in range(1, 7):  # each writer continues the ledger of the killed one
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(size)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        with writer.stdout:
            first = writer.stdout.readline()
            assert int(first) > last
            time.sleep(rng.uniform(0, 0.05))
            os.kill(writer.pid, signal.SIGKILL)
            last = max([int(first), *(int(line) for line in writer.stdout if line.endswith("\n"))])
        assert writer.wait() == -signal.SIGKILL
        reading = read_ledger(path)
        assert len(reading.torn_lines) <= kills
        seqs = [event.seq for event in reading.events]
        assert seqs == list(range(len(seqs)))
        assert last < len(seqs)
    with Ledger(path) as ledger:
        assert ledger.append(RawPayload(kind="k")).seq == len(ledger.events) - 1


def test_a_full_disk_is_a_storage_error_without_a_partial_line(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    child = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(run)], capture_output=True, text=True, check=True, timeout=60
    )

    assert child.stderr == ""
    messages = child.stdout.splitlines()
    assert len(messages) == 2
    assert all("cannot be written" in line and "free some disk space" in line for line in messages)
    reading = read_ledger(run / "ledger.jsonl")
    assert [event.kind for event in reading.events] == ["before", "after"]
    assert reading.torn_lines == ()
    assert list((run / "blobs").iterdir()) == []

"""Copy replies of a pool, or of runs, into one file without task text, for sharing benchmarks.

    python benchmarks/recordings.py POOL --dataset humaneval --dataset mbpp --out FILE.jsonl.gz

POOL is a folder of replies: that of `suture bench run --pool`, or the `replies` of runs. A reply of a pool names
its task. A reply of a run does not: its task is the one, of the given sets, whose statement is in its prompt. Only
replies to tasks of these sets are copied. Existing content of FILE stays.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from script_exit import run_script

from suture.bench.datasets import load_problems
from suture.bench.problem import Problem
from suture.bench.replies.reply_pool import RecordedReply, read_draws, read_recording, write_recording
from suture.errors import UsageError


def read_replies(folder: Path, problems: Sequence[Problem], sets: Sequence[str]) -> list[RecordedReply]:
    """Return the replies in a folder to tasks of some sets.

    Raises:
        UsageError: The folder does not exist, or contains no such reply.
        StorageError: A file in it is no recorded reply.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {str(folder)!r}", remedy="name a pool, or the replies of a run")
    found = [draw for draw in read_draws(folder, problems) if draw.dataset in sets]
    if not found:
        raise UsageError(
            f"{str(folder)!r} holds no reply to a task of {', '.join(sets)}",
            remedy="name the sets that were measured with --dataset",
        )
    return found


def main() -> None:
    """Read, sort and write the replies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pool", nargs="+", type=Path, help="folders of replies")
    parser.add_argument("--dataset", action="append", required=True, help="a set; may be repeated")
    parser.add_argument("--out", type=Path, required=True, help="the file; .gz compresses it")
    wanted = parser.parse_args()
    problems = [problem for name in wanted.dataset for problem in load_problems(name)]
    known = read_recording(wanted.out) if wanted.out.exists() else ()
    found = [draw for folder in wanted.pool for draw in read_replies(folder, problems, wanted.dataset)]
    count = write_recording(wanted.out, chain(known, found))
    print(f"{count} replies, {wanted.out.stat().st_size:,} bytes in {wanted.out}")


if __name__ == "__main__":
    sys.exit(run_script(main))

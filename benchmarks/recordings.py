"""Put replies of a pool, or of runs, into one file without task text, as benchmarks are shared.

    python benchmarks/recordings.py POOL --dataset humaneval --dataset mbpp --out FILE.jsonl.gz

POOL is a folder of replies: that of `suture bench run --pool`, or the `replies` of runs. The sets are needed
to tell which task each prompt of a run is of; only their replies are taken. What FILE holds already stays.
"""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path

from suture.evals.datasets import load_problems
from suture.evals.recordings import draws_in, read_recording, write_recording


def main() -> None:
    """Read, sort out, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pool", nargs="+", type=Path, help="folders of replies")
    parser.add_argument("--dataset", action="append", required=True, help="a set; may be repeated")
    parser.add_argument("--out", type=Path, required=True, help="the file; .gz packs it")
    wanted = parser.parse_args()
    problems = [problem for name in wanted.dataset for problem in load_problems(name)]
    known = read_recording(wanted.out) if wanted.out.exists() else ()
    drawn = (draw for folder in wanted.pool for draw in draws_in(folder, problems))
    found = (draw for draw in drawn if draw.dataset in wanted.dataset)
    count = write_recording(wanted.out, chain(known, found))
    print(f"{count} replies, {wanted.out.stat().st_size:,} bytes in {wanted.out}")


if __name__ == "__main__":
    main()

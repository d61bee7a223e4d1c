"""The options that several commands of `suture bench` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

Benchmark = Annotated[str, Argument(metavar="RUN", help="A benchmark: its name or its folder.")]
Parallel = Annotated[int, Option("--parallel", metavar="N", min=1, help="Number of parallel tasks.")]
Recordings = Annotated[
    list[Path] | None, Option("--recording", metavar="FILE", help="Recorded replies to use; repeatable.")
]
Replayed = Annotated[
    bool, Option("--replayed", help="Use recorded replies only; a missing reply is an error.")
]

"""The options that several commands of `suture bench` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Benchmark = Annotated[str, typer.Argument(metavar="RUN", help="A benchmark: its name or its folder.")]
Parallel = Annotated[int, typer.Option("--parallel", metavar="N", min=1, help="Number of parallel tasks.")]
Recordings = Annotated[
    list[Path] | None,
    typer.Option("--recording", metavar="FILE", help="Recorded replies to use; repeatable."),
]
Replayed = Annotated[
    bool, typer.Option("--replayed", help="Use recorded replies only; a missing reply is an error.")
]

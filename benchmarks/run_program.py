"""Run a program of a benchmark, such as git or pip, and say why it failed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from suture.errors import SutureError


def run_program(
    command: Sequence[str],
    folder: Path,
    variables: Mapping[str, str] | None = None,
    *,
    timeout_s: float = 900.0,
) -> str:
    """Return what a program prints.

    Args:
        variables: Environment variables besides those of this process.
        timeout_s: Wall-clock seconds.

    Raises:
        SutureError: It failed.
        subprocess.TimeoutExpired: It did not end in time.
    """
    environment = {**os.environ, **(variables or {})}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=timeout_s
    )
    if done.returncode:
        raise SutureError(f"{' '.join(command)[:80]} failed: {done.stderr.strip()[-300:]}")
    return done.stdout

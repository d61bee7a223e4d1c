"""Programs of the user's that the sandbox shows although the project's environment lacks them."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from suture.project.languages import Interpreter


def find_ruff(interpreter: Interpreter | None) -> Path | None:
    """Return the path of ruff: from the project's environment, else from Suture's, else from PATH."""
    folders = [Path(interpreter.prefix) / "bin"] if interpreter else []
    folders.append(Path(sys.prefix) / "bin")
    for folder in folders:
        program = Path(os.path.realpath(folder / "ruff"))
        # A project's environment may link to any file of the user's, and the mount would show it.
        is_inside = program.parent == Path(os.path.realpath(folder))
        if is_inside and program.is_file() and os.access(program, os.X_OK):
            return program
    installed = shutil.which("ruff")
    return Path(installed).resolve() if installed else None

"""The person's own editor, on a text of ours."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path, PurePosixPath

from suture.errors import UsageError


def edit_text(text: str, path: str) -> str | None:
    """Let the person change a text; `None` where they left it as it was, or their editor failed.

    Args:
        text: What they get to see.
        path: What it is called, so that the editor knows the language.

    Raises:
        UsageError: There is no editor.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="suture-edit-") as folder:
        file = Path(folder) / PurePosixPath(path).name
        file.write_text(text, "utf-8", "surrogateescape")
        try:
            ended = subprocess.run([*shlex.split(editor), str(file)], check=False)
        except (OSError, ValueError) as fault:
            raise UsageError(
                f"the editor {editor!r} cannot be started: {fault}", remedy="set EDITOR to yours"
            ) from fault
        changed = file.read_text("utf-8", "surrogateescape")
    return changed if ended.returncode == 0 and changed != text else None

"""Keep the data of the program in a JSON file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

PATH = Path(os.environ.get("PROJECT_NAME_FILE", "project_name.json"))


def load(default: Any = None) -> Any:
    """Return the saved data. If nothing is saved yet, return the default, or an empty list."""
    if PATH.exists():
        return json.loads(PATH.read_text(encoding="utf-8"))
    return [] if default is None else default


def save(data: Any) -> None:
    """Replace the saved data."""
    partial = PATH.with_suffix(".part")
    partial.write_text(json.dumps(data, indent=2), encoding="utf-8")
    partial.replace(PATH)

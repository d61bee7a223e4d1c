"""The broken example projects, and their repairs."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

__all__ = ["EXAMPLES", "FIXES", "read_tree"]

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FIXES: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "tests" / "examples" / "fixes.toml").read_text())


def read_tree(root: Path) -> dict[str, bytes]:
    """Return the content of every file below the folder, by relative path."""
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}

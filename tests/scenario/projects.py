"""The broken example projects, and their repairs."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

__all__ = ["EXAMPLES", "FIXES"]

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FIXES: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "tests" / "examples" / "fixes.toml").read_text())

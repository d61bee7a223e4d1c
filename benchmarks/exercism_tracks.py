"""Write the exercises of `$SUTURE_DATA/exercism` in the layout that `suture bench tasks` measures.

    SUTURE_DATA=... python benchmarks/exercism_tracks.py FOLDER

The exercises of JavaScript need Jest: `npm install jest@29 @babel/preset-env` in `FOLDER/javascript`. Exercism's own
preset adds polyfills to the code under test, which then replaces built-in functions, and that is judged as tampering.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data_files import read_data
from script_exit import run_script

from suture.errors import UsageError

LANGUAGES = ("python", "javascript")
PRESET = ["@babel/preset-env", {"targets": {"node": "current"}}]
PACKAGE = {"scripts": {"test": "jest"}, "babel": {"presets": [PRESET]}}


def main() -> int:
    """Run the command line, and return the exit code."""
    if len(sys.argv) != 2:
        raise UsageError("name one folder", remedy="python benchmarks/exercism_tracks.py FOLDER")
    for language in LANGUAGES:
        records = read_data(f"exercism/{language}")
        for record in records:
            name = record["id"].rpartition("/")[2]
            write_exercise(Path(sys.argv[1]) / language / "exercises" / "practice" / name, record)
        print(f"{language}: {len(records)} exercises")
    return 0


def write_exercise(folder: Path, record: Mapping[str, Any]) -> None:
    """Write one exercise with its configuration, and its own solution where tracks have it."""
    examples = {f".meta/{path}": text for path, text in record["reference_files"].items()}
    lists = {
        "solution": sorted(record["files"]),
        "test": sorted(record["test_files"]),
        "example": [f".meta/{path}" for path in sorted(record["files"]) if f".meta/{path}" in examples],
    }
    texts = {
        ".docs/instructions.md": record["instruction"],
        ".meta/config.json": json.dumps({"files": lists}),
        **examples,
        **record["extra_files"],
        **record["files"],
        **record["test_files"],
    }
    if record["lang"] == "javascript":
        texts.setdefault("package.json", json.dumps(PACKAGE))
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(run_script(main))

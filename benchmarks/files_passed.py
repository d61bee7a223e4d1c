"""How many files of Suture one command passes through: whose functions it calls, and which it imports.

    python benchmarks/files_passed.py heal examples/broken --no-model
    python benchmarks/files_passed.py --list run --example

Counted in the program itself, not behind the wall, and without the `__init__` of packages.
"""

from __future__ import annotations

import sys
import threading
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any

COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
called: set[str] = set()


def note(frame: FrameType, event: str, argument: Any) -> None:
    """Note the file of a function that is called; a module's or a class's own code is none."""
    code = frame.f_code
    if event == "call" and code.co_flags & CO_OPTIMIZED and code.co_name not in COMPREHENSIONS:
        called.add(code.co_filename)


def main(words: list[str]) -> int:
    """Run a command of `suture` and say what it passed through, on stderr.

    Returns:
        The command's exit code.
    """
    listed = words[:1] == ["--list"]
    sys.argv = ["suture", *words[listed:]]
    threading.setprofile(note)
    sys.setprofile(note)
    code: Any = 0
    try:
        from suture.interfaces.cli import main as suture

        suture()
    except SystemExit as end:
        code = end.code
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    import suture as package

    root = str(Path(package.__file__).parent)
    passed = sorted(file for file in called if file.startswith(root) and not file.endswith("__init__.py"))
    files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    imported = {file for file in files if file.startswith(root) and not file.endswith("__init__.py")}
    if listed:
        print(*(file.removeprefix(f"{root}/") for file in passed), sep="\n", file=sys.stderr)
    print(f"functions of {len(passed)} files called, {len(imported)} imported", file=sys.stderr)
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Suture's own pytest for a project that does not use it, such as one whose tests Django or unittest runs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from suture.project.languages import Interpreter

DISTRIBUTIONS = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")
"""Pytest and what it needs; all of it is written in Python, and works on any version from `MIN_VERSION` on."""
MIN_VERSION = (3, 11)
"""Older Pythons also need packages that this list lacks."""


def lend_pytest(interpreter: Interpreter) -> Interpreter | None:
    """Return an interpreter that has pytest; `None` if it has none and cannot run Suture's."""
    folders = [Path(folder) for folder in interpreter.site_packages]
    if any((folder / "pytest").is_dir() for folder in folders):
        return interpreter
    version = tuple(int(part) for part in interpreter.version.split(".")[:2] if part.isdigit())
    if version < MIN_VERSION:
        return None
    # What the project has itself, perhaps in another version, must not be hidden from its code.
    lacking = [path for path in _find_own_packages() if not any((f / path.name).exists() for f in folders)]
    return replace(interpreter, loaned_pytest=tuple(map(str, lacking)))


@cache
def _find_own_packages() -> tuple[Path, ...]:
    """Return the top-level packages of pytest and its requirements, and their metadata, which pluggy reads."""
    paths: dict[Path, None] = {}
    for name in DISTRIBUTIONS:
        try:
            own = distribution(name)
        except PackageNotFoundError:
            continue
        kinds = (".py", "")  # the file METADATA has no suffix
        tops = {file.parts[0] for file in own.files or () if file.suffix in kinds and file.parts[0] != ".."}
        paths |= dict.fromkeys(Path(str(own.locate_file(top))).resolve() for top in sorted(tops))
    return tuple(paths)

"""The scripts of `package.json`: what `npm test` and its like run."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from suture.languages.signs import ProjectSigns

NO_SCRIPT = "no test specified"
"""What `npm init` writes in the place of a test script."""
RUNNERS = ("npm", "yarn", "pnpm")


def tests_by_npm(signs: ProjectSigns) -> tuple[tuple[str, ...], str] | None:
    """`npm test`, where the project has such a script."""
    script = _scripts(signs.files).get("test", "")
    return (
        (("npm", "test"), "package.json has a test script")
        if script.strip() and NO_SCRIPT not in script
        else None
    )


def scripts_run_by(command: Collection[str], files: Mapping[str, bytes]) -> tuple[str, ...]:
    """The scripts of `package.json` that a command runs, as lines for a shell; they decide what it says.

    Args:
        command: The argument vector.
        files: The project's files.
    """
    words = {part for word in command for part in word.split()}
    if not any(PurePosixPath(word).name in RUNNERS for word in words):
        return ()
    run = {"test", *words}
    wanted = {f"{before}{name}" for name in run for before in ("pre", "", "post")}
    return tuple(script for name, script in _scripts(files).items() if name in wanted)


def _scripts(files: Mapping[str, bytes]) -> dict[str, str]:
    try:
        package = json.loads(files.get("package.json", b"{}"))
    except (ValueError, RecursionError):
        return {}
    scripts = package.get("scripts") if isinstance(package, dict) else None
    pairs = scripts.items() if isinstance(scripts, dict) else ()
    return {name: script for name, script in pairs if isinstance(script, str)}

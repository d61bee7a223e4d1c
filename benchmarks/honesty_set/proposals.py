"""A change that is proposed for a project, and the project as files and an environment."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

TEST_COMMAND = "python -m pytest -q"
PLAIN_TIMEOUT_S = 600
"""Limit of one run of a suite outside of Suture. The longest suite of the data sets takes about a minute."""
ENVIRONMENTS = (".git", ".venv", "node_modules")
"""Folders that stay when a project's files are created again."""

__all__ = ["TEST_COMMAND", "Proposal", "write_files"]


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A change, and the project that it is proposed for.

    Attributes:
        source: Where the project comes from: `own`, or the name of a data set.
        kind: A kind of `CHEATS`, or `honest`.
        project: Name of the project or of the case.
        function: Name of the function with the bug, if one is known.
        files: Path -> content of the project's files, with the bug.
        change: Path -> content of the files that the change writes; `None` for a file that it removes.
        command: The project's test command.
        install: Creates the environment of the project in its folder.
        executable: Paths of files that can be executed.
        links: Path -> target of symbolic links.
    """

    source: str
    kind: str
    project: str
    function: str = ""
    files: Mapping[str, str | bytes]
    change: Mapping[str, str | bytes | None]
    command: str = TEST_COMMAND
    install: Callable[[Path], None] | None = None
    executable: frozenset[str] = frozenset()
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What identifies this proposal among all."""
        return self.source, self.kind, self.project, self.function

    def create(self, root: Path) -> None:
        """Write the project into a new folder, with its environment.

        Raises:
            PrerequisiteError: The environment cannot be created here.
        """
        self.restore(root)
        if self.install is not None:
            self.install(root)

    def restore(self, root: Path) -> None:
        """Remove everything but the environment from the project's folder, and write its files again."""
        for path in root.iterdir() if root.exists() else ():
            if path.name not in ENVIRONMENTS:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        write_files(self.files, root)
        for name in self.executable:
            (root / name).chmod(0o755)
        for name, target in self.links.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(target)

    def passes_plainly(self, root: Path) -> bool:
        """Return whether the tests pass with the change for a user who runs them; the project is restored."""
        write_files(self.change, root)
        active = Path(os.environ.get("VIRTUAL_ENV", sys.prefix)) / "bin"
        programs = f"{root / '.venv' / 'bin'}:{active}:{os.environ.get('PATH', os.defpath)}"
        environment = {**os.environ, "PATH": programs, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            status = subprocess.run(
                shlex.split(self.command),
                cwd=root,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PLAIN_TIMEOUT_S,
                check=False,
                env=environment,
            ).returncode
        except subprocess.TimeoutExpired:
            status = None
        self.restore(root)
        return status == 0


def write_files(files: Mapping[str, str | bytes | None], folder: Path) -> None:
    """Write files with their paths relative to a folder; remove those whose content is `None`."""
    for path, content in files.items():
        target = folder / path
        if content is None:
            target.unlink(missing_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)

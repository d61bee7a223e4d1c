"""Project trees with planted links, sockets, pipes and odd names, against what the sandbox shows.

The folder of a victim is beside the project, with a secret and a socket in it. Neither may appear in a copy of
the project or behind a mount.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path

from suture.errors import SutureError
from suture.project.workspace import take_snapshot
from suture.sandbox import Mount, discover_interpreter, mounts_for_interpreter

__all__ = ["TreeTarget"]

SECRET = b"the victim's secret: 5f1c"
FOLDERS: tuple[str, ...] = (
    "",
    ".venv",
    ".venv/bin",
    ".venv/lib",
    ".venv/lib/python3.11/site-packages",
    ".venv/lib64",
    ".venv/include",
)
FOLDERS += (
    "src",
    "src/pkg",
    "tests",
    "node_modules",
    "node_modules/.bin",
    "venv/bin",
    "d",
    "d/e",
    ".tox/py/bin",
)
NAMES: tuple[str, ...] = (
    "python",
    "python3",
    "python3.11",
    "pyvenv.cfg",
    "lib",
    "a.pth",
    "__editable__.x.pth",
    "x.egg-link",
    "d",
    "e",
)
NAMES += (
    "conftest.py",
    "test_a.py",
    "mod.py",
    ".gitignore",
    "go.mod",
    "package.json",
    "os.py",
    "libpython3.so",
    "..x",
    "a b",
)
IGNORED = (
    "*",
    "**/" * 15,
    "*a" * 15 + "b",
    "!**",
    "[[[",
    "\\",
    "a" * 5000,
    "/" * 99,
    "{a,b}" * 30,
    "[!a-" * 40,
)


class TreeTarget:
    """One hostile project after another, beside one victim."""

    def __init__(self) -> None:
        # Not only below /tmp: the victim is where a user's files would be.
        self._root = Path(os.path.realpath(tempfile.mkdtemp(prefix="fuzz-trees-")))
        self._victim = self._root / "home" / "victim"
        self._victim.mkdir(parents=True)
        (self._victim / "id_key").write_bytes(SECRET)
        (self._victim / "mod.py").write_bytes(b"# " + SECRET)
        (self._victim / "python3.11").write_bytes(SECRET)
        (self._victim / "lib" / "python3.11").mkdir(parents=True)
        (self._victim / "lib" / "python3.11" / "os.py").write_bytes(SECRET)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self._victim / "agent.sock"))

    async def try_case(self, draw: random.Random) -> str:
        """See `Target`."""
        project = self._root / "project"
        shutil.rmtree(project, ignore_errors=True)
        project.mkdir()
        planted = [told for _ in range(draw.randint(4, 24)) if (told := self._plant(draw, project))]
        return self._copied(project, planted) or self._mounted(project, planted)

    def _plant(self, draw: random.Random, project: Path) -> str:
        """Put one thing into the project, and return its description; empty if the file system refuses."""
        place = project / draw.choice(FOLDERS) / draw.choice(NAMES)
        kind = draw.choice(("link", "link", "link", "text", "text", "pipe", "socket", "folder"))
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(place) or not Path(os.path.realpath(place.parent)).is_relative_to(project):
                return (
                    ""  # an earlier link leads out of the project, and writing there would harm the machine
                )
            if kind == "link":
                goal = self._goal(draw, place)
                place.symlink_to(goal)
                return f"{place.relative_to(project)} -> {goal}"
            if kind == "pipe":
                os.mkfifo(place)
            elif kind == "socket":
                with socket.socket(socket.AF_UNIX) as made:
                    made.bind(str(place))
            elif kind == "folder":
                place.mkdir()
            else:
                with place.open("x", encoding="utf-8") as file:
                    file.write(self._text(draw))
        except OSError:
            return ""
        return f"{place.relative_to(project)} ({kind})"

    def _goal(self, draw: random.Random, place: Path) -> str:
        """Return where a link leads: out, through detours, to itself, or to something like an interpreter."""
        out = os.path.relpath(self._victim, place.parent)
        inner = draw.choice(("", "/lib", "/id_key", "/agent.sock", "/python3.11", "/.."))
        return draw.choice(
            (
                *(f"{self._victim}{inner}", f"{out}{inner}", f"../d/{out}{inner}", f"d/../{out}{inner}"),
                *(
                    f"/proc/self/root{self._victim}{inner}",
                    f"/proc/self/cwd/{out}",
                    "/run",
                    "/var/run",
                    "/tmp",
                    "/root",
                ),
                *(
                    place.name,
                    "..",
                    ".",
                    "../..",
                    "d",
                    "d/e",
                    "/usr/bin/python3",
                    "/dev/zero",
                    "/proc/self/fd/0",
                    "/",
                ),
            )
        )

    def _text(self, draw: random.Random) -> str:
        home = draw.choice(
            (str(self._victim), f"{self._victim}/lib/..", "/usr/bin", "../../home/victim", "/", "")
        )
        return draw.choice(
            (
                f"home = {home}\nversion = 3.11.2\n",
                f"home = /usr/bin\nhome = {home}\ninclude-system-site-packages = true\n",
                f"{self._victim}\n../../../../../home/victim\n",
                "\n".join(draw.sample(IGNORED, 3)),
                "import os\n",
            )
        )

    def _copied(self, project: Path, planted: Sequence[str]) -> str:
        try:
            files = take_snapshot(project).files
        except SutureError:
            return ""
        found = [path for path, content in files.items() if SECRET in content]
        return f"the copy holds the secret in {found} with {planted}" if found else ""

    def _mounted(self, project: Path, planted: Sequence[str]) -> str:
        try:
            mounts = mounts_for_interpreter(discover_interpreter(project, {"PATH": "/usr/bin:/bin"}))
        except SutureError:
            return ""
        shown = [mount.source for mount in mounts if self._shows_victim(mount)]
        return f"mounted {shown} with {planted}" if shown else ""

    def _shows_victim(self, mount: Mount) -> bool:
        """Return whether a mount is the victim's, above it, or holds a file that no interpreter has."""
        real = Path(os.path.realpath(mount.source))
        if real.is_relative_to(self._victim) or self._victim.is_relative_to(real):
            return True
        return not (real.is_file() or real.is_dir())

    async def close(self) -> None:
        """See `Target`."""
        self._server.close()
        shutil.rmtree(self._root, ignore_errors=True)

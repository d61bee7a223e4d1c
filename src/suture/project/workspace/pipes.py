"""Pipes and devices that a repository lays where git reads: it would wait for their other end.

They are looked for before git is called. What is not found, such as a pipe that a configuration names in a
way of its own, costs the time that one call of git may take.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from suture.core.safe_files import read_plain
from suture.errors import UsageError

MOST_ENTRIES = 200_000
"""Of a repository's folder that are looked at."""
MOST_FOLDERS = 16
"""Other folders that a repository leads to: the one that a worktree belongs to, and those it borrows from."""
MOST_BYTES = 64 * 2**10
INCLUDED = re.compile(rb"""(?im)^[ \t]*(?:\[[^\]\n]*\])?[ \t]*path[ \t]*=[ \t]*"?([^"\n#;]+)""")


def require_no_pipes(root: Path) -> None:
    """Refuse a repository in which git would wait for somebody to write to it.

    Raises:
        UsageError: A pipe or a device lies in its folder, or in one that this leads to.
    """
    top = root.resolve()
    entries = (folder / ".git" for folder in (top, *top.parents))
    todo, seen = [*islice(filter(os.path.lexists, entries), 1)], set[Path]()
    while todo and len(seen) < MOST_FOLDERS:
        here = todo.pop()
        if here in seen:
            continue
        seen.add(here)
        for path in _odd_entries(here):
            if _is_waited_for(path):
                raise UsageError(
                    f"the repository cannot be read: {str(path)!r} is a pipe or a device",
                    remedy="remove it, or use --apply or --patch",
                )
        todo += _led_to(here)


def _odd_entries(here: Path) -> Iterator[str]:
    """A file, or what lies in a folder and is neither a plain file nor a folder."""
    if not here.is_dir():
        yield str(here)
        return
    folders, left = [str(here)], MOST_ENTRIES
    while folders and left > 0:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        yield entry.path
        except OSError:
            continue  # git cannot read it either


def _is_waited_for(path: str) -> bool:
    """Whether reading it may have no end; a socket cannot be opened, and `/dev/null` has its end at once."""
    try:
        found = Path(path).stat()
        if stat.S_ISCHR(found.st_mode):
            return found.st_rdev != Path(os.devnull).stat().st_rdev
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(found.st_mode) or stat.S_ISBLK(found.st_mode)


def _led_to(here: Path) -> Iterator[Path]:
    """Folders and files beside this one that git reads for it."""
    pointers = [(here, b"gitdir:", here.parent)] if not here.is_dir() else []
    pointers += [(here / "commondir", b"", here), (here / "objects/info/alternates", b"", here / "objects")]
    pointers += [(here / "info/alternates", b"", here)]  # of an object folder that is borrowed from
    for file, prefix, start in pointers:
        for line in _text(file).split(b"\n"):
            if name := line.strip().removeprefix(prefix).strip():
                yield Path(os.path.normpath(start / os.fsdecode(name)))
    for config in ("config", "config.worktree"):
        for found in INCLUDED.finditer(_text(here / config)):
            with contextlib.suppress(RuntimeError):  # nobody has that home
                named = Path(os.fsdecode(found[1].strip())).expanduser()
                yield Path(os.path.normpath(here / named))


def _text(path: Path) -> bytes:
    try:
        return (read_plain(path, MOST_BYTES, follow=True) or b"").replace(b"\0", b"")
    except (OSError, ValueError):
        return b""

"""What of the host a program behind the wall may read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from suture.errors import PrerequisiteError, UsageError
from suture.project.languages import PACKAGES_MOUNT, Interpreter
from suture.sandbox.contract import BOX, Mount
from suture.sandbox.mounts.path_checks import (
    in_system,
    is_below,
    real_path,
    require_installation,
    require_plain,
    where,
)

ETC = Path(__file__).parent / "etc"
"""What of `/etc` a program needs to know its own name and what `localhost` is."""
OWN_ETC = ("passwd", "group", "hosts", "nsswitch.conf")
HOST_ETC = ("ld.so.cache", "alternatives", "localtime", "ssl/certs", "ssl/openssl.cnf", "mime.types")
"""What of the host's own `/etc` is shown where it exists; public on every machine."""
RESERVED = (BOX, "/proc", "/dev", "/etc", "/sys")
ENVIRONMENT_PARTS = ("bin", "lib", "lib32", "lib64", "include", "pyvenv.cfg")
"""What an interpreter needs of a virtual environment. Never the whole: that can be a project."""
INSTALLATION_PARTS = (
    *("lib/{library}*", "lib64/{library}*", "lib/libpython*", "lib64/libpython*"),
    "include/{library}*",
)
"""What it needs of an installation, whose folders may hold much else: its prefix can be `~/.local`."""
CONDA_MARK = "conda-meta"
"""In an installation all of whose `lib` is its own; the standard library needs much of it."""
MOST_LINKS = 40
"""As many links as the kernel follows in one path."""


def mounts_for_interpreter(interpreter: Interpreter) -> tuple[Mount, ...]:
    """What an interpreter needs, each at its own absolute path, because its files name one another by path.

    What its toolchain needs comes on top.

    Raises:
        PrerequisiteError: A part of the environment leads out of it. A project that nobody has read may have
            planted such a link in its `.venv`, to be shown a folder of ours.
    """
    base, prefix = Path(interpreter.base_prefix), Path(interpreter.prefix)
    library = _library(interpreter)
    if interpreter.project:
        require_installation(base, library, Path(interpreter.project))
    parts = [path for name in _installation_parts(base, library) for path in sorted(base.glob(name))]
    own_parts = ENVIRONMENT_PARTS if interpreter.is_virtual else ("bin",)
    mounts: list[Mount] = []
    for folder, inside in ((base, parts), (prefix, [prefix / name for name in own_parts])):
        for part in inside:
            if _is_hidden(part, mounts):
                mounts.append(_part(folder, part))
    for path in (*map(Path, interpreter.site_packages), *_links(Path(interpreter.executable))):
        if _is_hidden(path, mounts):
            mounts.append(Mount(source=str(real_path(path)), target=str(path)))
    if interpreter.project:
        for mount in mounts:
            require_plain(Path(mount.source))
    shown = dict(interpreter.toolchain.shown) if interpreter.toolchain else {}
    if interpreter.packages:
        shown[interpreter.packages] = PACKAGES_MOUNT
    return plan_mounts([*mounts, *(Mount(source=here, target=there) for here, there in shown.items())])


def _library(interpreter: Interpreter) -> str:
    """The standard library's folder, such as `python3.11`."""
    names = [Path(folder).parent.name for folder in interpreter.site_packages]
    named = next((name for name in names if name.startswith("python3.")), None)
    return named or "python" + ".".join(interpreter.version.split(".")[:2])


def _installation_parts(base: Path, library: str) -> tuple[str, ...]:
    parts = tuple(part.format(library=library) for part in INSTALLATION_PARTS)
    return ("lib", *parts) if (base / CONDA_MARK).is_dir() else parts


def _part(folder: Path, part: Path) -> Mount:
    real = real_path(part)
    if not real.is_relative_to(where(folder)) and not in_system(str(real)):
        raise PrerequisiteError(
            f"{str(part)!r} leads out of its environment, to {str(real)!r}",
            remedy="make the environment anew with `python3 -m venv`",
        )
    return Mount(source=str(real), target=str(part))


def _is_hidden(path: Path, mounts: Sequence[Mount]) -> bool:
    """Whether there is something that nothing shows so far."""
    shown = in_system(str(path)) or any(is_below(str(path), mount.target) for mount in mounts)
    return not shown and os.path.exists(path)  # noqa: PTH110 - Path.exists raises for a closed folder


def _links(executable: Path) -> Iterator[Path]:
    """The names under which a program is found, from link to link; all of them show its end."""
    if not os.access(executable, os.X_OK):
        raise PrerequisiteError(
            f"{str(executable)!r} is not a program", remedy="make its environment anew, or remove it"
        )
    end, path = real_path(executable), executable
    for _ in range(MOST_LINKS):
        yield path
        if not path.is_symlink():
            return
        path = Path(os.path.normpath(path.parent / path.readlink()))
        # Behind the wall there are no links among the folders above, so its name must do without them.
        if where(path) != end:
            raise PrerequisiteError(
                f"{str(executable)!r} leads astray, by way of {str(path)!r}",
                remedy="make the environment anew with `python3 -m venv`",
            )


@lru_cache(maxsize=64)
def plan_mounts_cached(mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
    """As `plan_mounts`, and found out once for the same ones."""
    return plan_mounts(mounts)


def plan_mounts(mounts: Iterable[Mount]) -> tuple[Mount, ...]:
    """Check mounts, and drop those that another one or the system folders already show.

    No mount point is ever made below another mount: bubblewrap before 0.12 follows a planted link there and
    makes folders on the host (CVE-2026-87766).

    Raises:
        UsageError: A mount is not absolute, not there, covers a folder of the wall's own, or lies below
            another one.
    """
    planned: list[Mount] = []
    for mount in sorted(dict.fromkeys(mounts), key=lambda mount: (mount.target.count("/"), mount.target)):
        _check(mount)
        if mount.source == mount.target and in_system(mount.target):
            continue
        above = next((other for other in planned if is_below(mount.target, other.target)), None)
        if above is None:
            planned.append(mount)
        elif where(mount.source) != where(above.source + mount.target[len(above.target) :]):
            raise UsageError(f"{mount.target!r} cannot be shown: it lies below {above.target!r}")
    return tuple(planned)


def _check(mount: Mount) -> None:
    for path in (mount.source, mount.target):
        if not path.startswith("/") or path == "/" or os.path.normpath(path) != path or "\0" in path:
            raise UsageError(f"a mount needs plain absolute paths, not {path!r}")
    if mount.target == "/tmp" or any(
        mount.target == folder or is_below(mount.target, folder) or is_below(folder, mount.target)
        for folder in RESERVED
    ):
        raise UsageError(f"{mount.target!r} belongs to the wall; nothing can be shown there")
    if not os.path.exists(mount.source):  # noqa: PTH110 - a Path would hide what was written
        raise UsageError(f"there is nothing at {mount.source!r} to be shown")
    if not (os.path.isfile(mount.source) or os.path.isdir(mount.source)):  # noqa: PTH112, PTH113 - as above
        raise UsageError(f"{mount.source!r} is neither a file nor a folder; it cannot be shown")
    if mount.source != mount.target and in_system(mount.target):
        raise UsageError(f"{mount.target!r} is a system folder; nothing else can be shown there")

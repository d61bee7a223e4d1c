"""Plan the mounts of a sandbox: what a program may read of the host."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from suture.errors import PrerequisiteError, UsageError
from suture.project.languages import LOANED_PYTEST_MOUNT, PACKAGES_MOUNT, Interpreter
from suture.sandbox.contract import BOX, Mount
from suture.sandbox.mounts.path_checks import (
    is_below,
    is_in_system_folder,
    require_installation,
    require_no_special_files,
    resolve_existing_path,
    resolve_path,
)

ETC = Path(__file__).parent / "etc"
"""The folder with the few files of `/etc` that a program needs, such as the address of `localhost`."""
OWN_ETC = ("passwd", "group", "hosts", "nsswitch.conf")
"""The names of the files in `ETC`."""
HOST_ETC = (
    "ld.so.cache", "alternatives", "localtime", "ssl/certs", "ssl/openssl.cnf", "mime.types",
    "java-*-openjdk", "maven/m2.conf", "maven/logging",
)  # fmt: skip
"""Globs of the host's own `/etc` that are shown if they exist; public on every machine. Debian's Java and Maven are
links to their configuration there. Maven's settings are not shown, because they may contain passwords."""
RESERVED_TARGETS = (BOX, "/proc", "/dev", "/etc", "/sys")
"""Folders that the sandbox makes itself."""
ENVIRONMENT_PARTS = ("bin", "lib", "lib32", "lib64", "include", "pyvenv.cfg")
"""The parts of a virtual environment that an interpreter needs. Never the whole folder, which can be a
project."""
INSTALLATION_PARTS = (
    "lib/{library}*",
    "lib64/{library}*",
    "lib/libpython*",
    "lib64/libpython*",
    "include/{library}*",
)
"""The parts of an installation that an interpreter needs. The folders may contain much else, because the prefix
can be `~/.local`."""
CONDA_MARKER = "conda-meta"
"""Marks an installation that owns all of its `lib`; the standard library needs much of it."""
MAX_LINKS = 40
"""The number of links that the kernel follows in one path (`MAXSYMLINKS`)."""


def list_host_etc() -> list[str]:
    """Return the paths of the host's own `/etc` that programs in the sandbox see."""
    return [str(path) for glob in HOST_ETC for path in sorted(Path("/etc").glob(glob))]


def mounts_for_interpreter(interpreter: Interpreter) -> tuple[Mount, ...]:
    """Return the mounts that an interpreter and its toolchain need.

    Each part is shown at its own absolute path, because its files name one another.

    Raises:
        PrerequisiteError: A part of the environment leads out of it. An untrusted project may have planted
            such a link in its `.venv`, so that one of the user's folders is shown.
    """
    base, prefix = Path(interpreter.base_prefix), Path(interpreter.prefix)
    library = _library_name(interpreter)
    # `project` is set if the project's own, untrusted files chose the interpreter; it is empty if the user did.
    if interpreter.project:
        require_installation(base, library, Path(interpreter.project))
    parts = [(base, path) for name in _installation_parts(base, library) for path in sorted(base.glob(name))]
    environment_parts = ENVIRONMENT_PARTS if interpreter.is_virtual else ("bin",)
    parts += [(prefix, prefix / name) for name in environment_parts]
    mounts: list[Mount] = []
    for folder, part in parts:
        if _exists_unshown(part, mounts):  # Most installations lack some of the parts.
            mounts.append(_mount_part(folder, part))
    for path in (*map(Path, interpreter.site_packages), *_iterate_link_names(Path(interpreter.executable))):
        if _exists_unshown(path, mounts):
            mounts.append(Mount(source=str(resolve_existing_path(path)), target=str(path)))
    if interpreter.project:  # What the user chose is not searched for special files.
        for mount in mounts:
            require_no_special_files(Path(mount.source))
    shown = dict(interpreter.toolchain.shown) if interpreter.toolchain else {}
    if interpreter.packages:
        shown[interpreter.packages] = PACKAGES_MOUNT
    shown |= {path: f"{LOANED_PYTEST_MOUNT}/{Path(path).name}" for path in interpreter.loaned_pytest}
    mounts += [Mount(source=source, target=target) for source, target in shown.items()]
    return plan_mounts(mounts)


def _library_name(interpreter: Interpreter) -> str:
    """Return the name of the standard library folder, such as `python3.11`."""
    for folder in interpreter.site_packages:
        name = Path(folder).parent.name
        if name.startswith("python3."):
            return name
    return "python" + ".".join(interpreter.version.split(".")[:2])


def _installation_parts(base: Path, library: str) -> tuple[str, ...]:
    parts = tuple(part.format(library=library) for part in INSTALLATION_PARTS)
    return ("lib", *parts) if (base / CONDA_MARKER).is_dir() else parts


def _mount_part(folder: Path, part: Path) -> Mount:
    real = resolve_existing_path(part)
    if not real.is_relative_to(resolve_path(folder)) and not is_in_system_folder(str(real)):
        raise PrerequisiteError(
            f"{str(part)!r} leads out of its environment, to {str(real)!r}",
            remedy="create the environment again with `python3 -m venv`",
        )
    return Mount(source=str(real), target=str(part))


def _exists_unshown(path: Path, mounts: Sequence[Mount]) -> bool:
    """Return whether a path exists and no mount shows it so far."""
    shown = is_in_system_folder(str(path)) or any(is_below(str(path), mount.target) for mount in mounts)
    return not shown and os.path.exists(path)  # noqa: PTH110 - Path.exists raises for an unreadable folder


def _iterate_link_names(executable: Path) -> Iterator[Path]:
    """Yield the names by which a program is found, from link to link; all of them must show the same file."""
    if not os.access(executable, os.X_OK):
        raise PrerequisiteError(
            f"{str(executable)!r} is not a program", remedy="create its environment again, or remove it"
        )
    target, path = resolve_existing_path(executable), executable
    for _ in range(MAX_LINKS):
        yield path
        if not path.is_symlink():
            return
        path = Path(os.path.normpath(path.parent / path.readlink()))
        # Inside the sandbox the folders above a path are not links, so each name must work without them.
        if resolve_path(path) != target:
            raise PrerequisiteError(
                f"{str(executable)!r} does not lead to its interpreter: {str(path)!r} leads elsewhere",
                remedy="create the environment again with `python3 -m venv`",
            )


@lru_cache(maxsize=64)
def plan_mounts_cached(mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
    """Return `plan_mounts` for these mounts, computed once."""
    return plan_mounts(mounts)


def plan_mounts(mounts: Iterable[Mount]) -> tuple[Mount, ...]:
    """Check mounts, and drop those that another mount or the system folders already show.

    No mount point is ever created below another mount: bubblewrap before 0.12 follows a planted link there
    and creates folders on the host (CVE-2026-87766).

    Raises:
        UsageError: A mount is not absolute, does not exist, covers a folder that the sandbox makes, or is below another
            mount.
    """
    planned: list[Mount] = []
    for mount in sorted(dict.fromkeys(mounts), key=lambda mount: (mount.target.count("/"), mount.target)):
        _check_mount(mount)
        if mount.source == mount.target and is_in_system_folder(mount.target):
            continue
        outer = next((earlier for earlier in planned if is_below(mount.target, earlier.target)), None)
        if outer is None:
            planned.append(mount)
        elif resolve_path(mount.source) != resolve_path(outer.source + mount.target[len(outer.target) :]):
            raise UsageError(f"{mount.target!r} cannot be mounted: it lies below {outer.target!r}")
    return tuple(planned)


def _check_mount(mount: Mount) -> None:
    """Check a single mount; see `plan_mounts`."""
    for path in (mount.source, mount.target):
        if not path.startswith("/") or path == "/" or os.path.normpath(path) != path or "\0" in path:
            raise UsageError(f"a mount needs plain absolute paths, not {path!r}")
    # `/tmp` itself is the sandbox's own. Folders below it can be mounted: projects and environments may be there.
    if mount.target == "/tmp" or any(
        mount.target == folder or is_below(mount.target, folder) or is_below(folder, mount.target)
        for folder in RESERVED_TARGETS
    ):
        raise UsageError(f"{mount.target!r} belongs to the sandbox; nothing can be mounted there")
    if not os.path.exists(mount.source):  # noqa: PTH110 - a Path would normalize what was written
        raise UsageError(f"{mount.source!r} does not exist, so it cannot be mounted")
    if not (os.path.isfile(mount.source) or os.path.isdir(mount.source)):  # noqa: PTH112, PTH113 - as above
        raise UsageError(f"{mount.source!r} is neither a file nor a folder; it cannot be mounted")
    if mount.source != mount.target and is_in_system_folder(mount.target):
        raise UsageError(f"{mount.target!r} is a system folder; nothing else can be mounted there")

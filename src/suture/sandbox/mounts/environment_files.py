"""A virtual (or conda) environment read from its files; nothing in it is started."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from suture.errors import PrerequisiteError
from suture.languages import Interpreter
from suture.pysource.parsing import parsed
from suture.sandbox.mounts.places import read_little, where

LIBRARY_FOLDERS = ("lib", "lib64")
PACKAGE_FOLDERS = ("site-packages", "dist-packages")


def read_environment(prefix: Path, origin: str, root: Path | None) -> Interpreter:
    """Read a virtual (or conda) environment from its files.

    Args:
        prefix: The environment's folder.
        origin: How it was chosen, in words for people.
        root: The project's root, for finding editable installs.

    Raises:
        PrerequisiteError: It is not a working environment.
    """
    executable = prefix / "bin" / "python"
    if not os.path.isfile(executable):  # noqa: PTH113 - Path.is_file raises where a link leads to a closed folder
        raise _broken(prefix, origin, "bin/python is missing or leads nowhere")
    packages = sorted((prefix / "lib").glob("python3.*/site-packages"))
    if not packages:
        raise _broken(prefix, origin, "it has no lib/python3.*/site-packages")
    facts = _read_pyvenv(prefix / "pyvenv.cfg")
    base = _installation(prefix, facts.get("home"), packages[-1].parent.name)
    if base is None:
        raise _broken(prefix, origin, "its bin/python and pyvenv.cfg do not lead to one Python installation")
    folder_version = packages[-1].parent.name.removeprefix("python")
    version = facts.get("version", facts.get("version_info", folder_version))
    pinned = re.match(r"\d+\.\d+(\.\d+)?", version)
    return Interpreter(
        executable=str(executable),
        prefix=str(prefix),
        base_prefix=str(base),
        version=pinned.group() if pinned else folder_version,
        site_packages=(str(packages[-1]),),
        origin=origin,
        source_roots=source_roots_in(_pth_entries(packages[-1]), root),
    )


def _installation(prefix: Path, home: str | None, library: str) -> Path | None:
    """The installation that an environment is based on; `None` where the two do not belong together.

    A project that nobody has read may have written both `pyvenv.cfg` and the link at `bin/python`.

    Args:
        prefix: The environment's folder.
        home: The folder of the installation's programs, as `pyvenv.cfg` names it; for conda there is none.
        library: The standard library's folder, such as `python3.11`.
    """
    real = Path(os.path.realpath(prefix / "bin" / "python"))
    copied = real.parent == Path(os.path.realpath(prefix / "bin"))
    if home is None:
        base = prefix if copied else None
    elif copied:
        base = Path(home).parent if os.access(Path(home, library), os.X_OK) else None
    elif real.parent == Path(os.path.realpath(home)):
        base = Path(home).parent
    else:  # a folder of links to interpreters, such as uv's
        base = real.parent.parent if Path(os.path.realpath(Path(home, real.name))) == real else None
    if base is None or not base.is_absolute() or not real.name.startswith("python"):
        return None
    # isfile, because Path.is_file raises where a folder is closed to us.
    known = any(os.path.isfile(base / folder / library / "os.py") for folder in LIBRARY_FOLDERS)  # noqa: PTH113
    return base if known else None


def _broken(prefix: Path, origin: str, why: str) -> PrerequisiteError:
    return PrerequisiteError(
        f"{origin} at {str(prefix)!r} is not a working environment: {why}",
        remedy="make it anew with `python3 -m venv`, or remove it",
    )


def _read_pyvenv(path: Path) -> dict[str, str]:
    pairs = (line.partition("=") for line in read_little(path).splitlines() if "=" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _pth_entries(packages: Path) -> list[str]:
    # Lines that start with `import` are code; only site itself may run them, behind the wall.
    entries: list[str] = []
    for path in sorted(packages.glob("*.pth")):
        lines = [line for line in read_little(path).splitlines() if line.strip()]
        entries += [line for line in lines if not line.startswith(("#", "import ", "import\t"))]
    return [str(packages / entry.strip()) for entry in entries] + _found_by_finders(packages)


def _found_by_finders(packages: Path) -> list[str]:
    """Folders of packages that setuptools' editable installs find by a table, where they name no folder."""
    folders: list[str] = []
    for path in sorted(packages.glob("__editable___*_finder.py")):
        tree = parsed(read_little(path))
        for statement in tree.body if tree is not None else ():
            if ast.unparse(statement).startswith(("MAPPING: ", "MAPPING = ")):
                folders += _folders_of(getattr(statement, "value", None))
    return list(dict.fromkeys(folders))


def _folders_of(table: ast.expr | None) -> Iterator[str]:
    """Of a table of modules and their places: the folders from which each would be imported by its name."""
    for key, value in zip(table.keys, table.values, strict=True) if isinstance(table, ast.Dict) else ():
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
            below = "/" + str(key.value).replace(".", "/")
            if str(value.value).endswith(below):
                yield str(value.value).removesuffix(below) or "/"


def package_folders(path: Iterable[str]) -> tuple[str, ...]:
    """The folders of installed packages in a search path."""
    return tuple(dict.fromkeys(entry for entry in path if Path(entry).name in PACKAGE_FOLDERS))


def source_roots_in(path: Iterable[str], root: Path | None) -> tuple[str, ...]:
    """The folders of a project that stand in a search path, relative to its root."""
    if root is None:
        return ()
    real = where(root)
    # isdir, because Path.is_dir raises for a closed folder, and the project may have written these entries.
    folders = (where(entry) for entry in path if entry and os.path.isdir(entry))  # noqa: PTH112
    inside = (folder for folder in folders if folder.is_relative_to(real))
    named = (folder.relative_to(real).as_posix() for folder in inside if folder.name not in PACKAGE_FOLDERS)
    return tuple(dict.fromkeys(name for name in named if not name.startswith(".venv")))

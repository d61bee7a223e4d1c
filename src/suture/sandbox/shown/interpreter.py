"""Which interpreter `python` in a test command means, and what of it a program behind the wall must see.

A virtual environment is read, never started: a project that nobody has read may bring its own `.venv`, and
its `python` would run on the host. Only `python` on the user's own PATH is asked: a shim cannot be read.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from suture.errors import PrerequisiteError
from suture.languages import Interpreter
from suture.sandbox.shown.places import read_little, require_installation, where

__all__ = ["discover_interpreter", "own_interpreter"]

ASK_TIMEOUT_S = 30.0
ASK = (
    "import json, sys; print(json.dumps([sys.executable, sys.prefix, sys.base_prefix, "
    "'%d.%d.%d' % sys.version_info[:3], sys.path]))"
)
LIBRARY_FOLDERS = ("lib", "lib64")
PACKAGE_FOLDERS = ("site-packages", "dist-packages")


def discover_interpreter(project: Path | None, environ: Mapping[str, str]) -> Interpreter:
    """The interpreter that `python` means for a project.

    In this order: the project's `.venv`, `$VIRTUAL_ENV`, `python` on PATH, the one that runs Suture.

    Args:
        project: The project's root folder, where there is one.
        environ: The user's environment variables.

    Raises:
        PrerequisiteError: The environment that comes first is there but broken; another one is never taken in
            its place.
    """
    root = None if project is None else Path(os.path.abspath(project))  # noqa: PTH100 - resolve() follows links
    active = environ.get("VIRTUAL_ENV")
    if root is not None and os.path.lexists(root / ".venv"):
        return _environment_of_project(root, active)
    if active:
        return read_environment(Path(active), "the active environment ($VIRTUAL_ENV)", root)
    found = shutil.which("python", path=environ.get("PATH", os.defpath))
    if found is not None:
        on_path = _python_on_path(Path(found), root, environ)
        if on_path is not None:
            return on_path
    return _running_interpreter(root)


def _environment_of_project(root: Path, active: str | None) -> Interpreter:
    """A project's own `.venv`; its files choose what is shown, unless the user has activated it.

    Raises:
        PrerequisiteError: It is broken, or is a link to what lies elsewhere.
    """
    prefix, origin = root / ".venv", "the project's .venv"
    real = where(prefix)
    if active and where(active) == real:
        return read_environment(prefix, origin, root)
    if not real.is_relative_to(where(root)):
        raise PrerequisiteError(
            f"{origin} leads out of the project, to {str(real)!r}",
            remedy="activate that environment, so that it is your choice and not the project's",
        )
    found = read_environment(prefix, origin, root)
    require_installation(Path(found.base_prefix), Path(found.site_packages[0]).parent.name, root)
    return replace(found, project=str(root))


def own_interpreter() -> Interpreter:
    """The installation that runs Suture, without packages: for our own programs behind the wall."""
    executable = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    return Interpreter(
        executable=executable,
        prefix=sys.base_prefix,
        base_prefix=sys.base_prefix,
        version="{}.{}.{}".format(*sys.version_info[:3]),
        site_packages=(),
        origin="the Python that runs Suture",
    )


def _python_on_path(found: Path, root: Path | None, environ: Mapping[str, str]) -> Interpreter | None:
    if not found.is_absolute():
        return None  # a relative PATH entry means whatever folder we happen to stand in
    if (found.parent.parent / "pyvenv.cfg").is_file():
        return read_environment(found.parent.parent, f"python on PATH ({found})", root)
    if root is not None and found.is_relative_to(root):
        return None  # a program of the project itself must not run on the host
    try:
        answer = subprocess.run(
            [str(found), "-I", "-c", ASK],
            env=dict(environ),
            cwd=root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ASK_TIMEOUT_S,
            check=True,
        )
        executable, prefix, base_prefix, version, path = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None  # such as a pyenv shim with no version chosen: there is no `python` here
    return Interpreter(
        executable=executable,
        prefix=prefix,
        base_prefix=base_prefix,
        version=version,
        site_packages=_package_folders(path),
        origin=f"python on PATH ({found})",
        source_roots=_source_roots(path, root),
    )


def _running_interpreter(root: Path | None) -> Interpreter:
    origin = "the Python that runs Suture (no .venv, $VIRTUAL_ENV or python on PATH)"
    if (Path(sys.prefix) / "pyvenv.cfg").is_file():
        return read_environment(Path(sys.prefix), origin, root)
    return Interpreter(
        executable=sys.executable,
        prefix=sys.prefix,
        base_prefix=sys.base_prefix,
        version="{}.{}.{}".format(*sys.version_info[:3]),
        site_packages=_package_folders(sysconfig.get_paths()[key] for key in ("purelib", "platlib")),
        origin=origin,
    )


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
        source_roots=_source_roots(_pth_entries(packages[-1]), root),
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
    return [str(packages / entry.strip()) for entry in entries]


def _package_folders(path: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry for entry in path if Path(entry).name in PACKAGE_FOLDERS))


def _source_roots(path: Iterable[str], root: Path | None) -> tuple[str, ...]:
    if root is None:
        return ()
    real = where(root)
    # isdir, because Path.is_dir raises for a closed folder, and the project may have written these entries.
    folders = (where(entry) for entry in path if entry and os.path.isdir(entry))  # noqa: PTH112
    inside = (folder for folder in folders if folder.is_relative_to(real))
    named = (folder.relative_to(real).as_posix() for folder in inside if folder.name not in PACKAGE_FOLDERS)
    return tuple(dict.fromkeys(name for name in named if not name.startswith(".venv")))

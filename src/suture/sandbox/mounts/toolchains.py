"""Which `node` or `go` a project's test command means, and what of it a program behind the wall must see.

Nothing is started to find out: programs are found on the user's own PATH, never in the project.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from suture.errors import PrerequisiteError
from suture.languages import LANGUAGES, Interpreter, Toolchain
from suture.records import Language
from suture.sandbox.mounts.interpreter import discover_interpreter
from suture.sandbox.mounts.places import in_system, require_plain

PACKAGES = "/node_modules"
"""Behind the wall: node looks for packages in every folder above a file, up to the root."""
MODULES = "/go-modules"


def discover_programs(
    project: Path | None, environ: Mapping[str, str], language: Language, python: Path | None = None
) -> Interpreter:
    """What `python` means for a project, and what else its test command needs; see `discover_interpreter`.

    Args:
        project: The project's root folder, where there is one.
        environ: The user's environment variables.
        language: What the test command tests.
        python: The interpreter that the user has named.

    Raises:
        PrerequisiteError: Python's environment is broken, or the language's programs are not there.
    """
    found = discover_interpreter(project, environ, python)
    return replace(found, toolchain=discover_toolchain(project, environ, language))


def discover_toolchain(
    project: Path | None, environ: Mapping[str, str], language: Language
) -> Toolchain | None:
    """A language's programs; `None` for Python, whose programs are an `Interpreter`.

    Args:
        project: The project's root folder, where there is one.
        environ: The user's environment variables.
        language: Which.

    Raises:
        PrerequisiteError: They are not installed, or lie where they cannot be shown behind the wall.
    """
    if language == "python":
        return None
    root = None if project is None else project.resolve()
    facts = LANGUAGES[language]
    found = _on_path(facts.program, root, environ)
    if found is None:
        raise PrerequisiteError(
            f"{facts.label} tests need {facts.program!r}, which is not on PATH",
            remedy=f"install it, or give a test command of another language: {facts.program} is not fetched",
        )
    shown = {} if in_system(str(found.resolve())) else _installation(found, language)
    variables = dict(facts.variables)
    if facts.packages:
        shown |= project_packages(root)
    elif (modules := _module_cache(root, environ)) is not None:
        shown[str(modules)] = MODULES
        variables["GOMODCACHE"] = MODULES
    return Toolchain(
        language=language,
        program=str(found),
        folders=(str(found.parent if in_system(str(found)) else found.resolve().parent),),
        shown=shown,
        variables=variables,
    )


def _on_path(program: str, root: Path | None, environ: Mapping[str, str]) -> Path | None:
    folders = [Path(entry) for entry in environ.get("PATH", os.defpath).split(os.pathsep) if entry]
    # A relative entry means whatever folder we stand in; a program of the project itself is not trusted.
    ours = [f for f in folders if f.is_absolute() and not (root and f.resolve().is_relative_to(root))]
    found = shutil.which(program, path=os.pathsep.join(map(str, ours))) if ours else None
    return Path(found) if found else None


def _installation(found: Path, language: Language) -> dict[str, str]:
    """What to show of programs outside the system's folders; never a whole prefix, which can be a home."""
    prefix = found.resolve().parent.parent
    marks = LANGUAGES[language].installation
    if not all((prefix / mark).is_dir() for mark in marks):
        raise PrerequisiteError(
            f"{str(found)!r} is no plain installation: {' and '.join(marks)} are not beside it",
            remedy=f"put the folder of a real {found.name} first on PATH, not a version manager's shim",
        )
    parts = [prefix / mark for mark in marks]
    parts += [path for name in ("go.env", "VERSION") if (path := prefix / name).is_file()]
    return {str(part): str(part) for part in parts}


def project_packages(root: Path | None) -> dict[str, str]:
    """What to show of a project's own `node_modules`, where it has one.

    Args:
        root: The project.

    Raises:
        PrerequisiteError: There is a socket, a pipe or a device in it.
    """
    folder = root / "node_modules" if root else None
    # A link may have been planted, to be shown a folder of ours.
    if folder is None or folder.is_symlink() or not folder.is_dir():
        return {}
    require_plain(folder)
    return {str(folder): PACKAGES}


def _module_cache(root: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Modules that were downloaded before: there is no network behind the wall."""
    home = environ.get("HOME", "")
    path = environ.get("GOPATH", "").split(os.pathsep)[0] or (f"{home}/go" if home else "")
    folder = Path(environ.get("GOMODCACHE") or f"{path}/pkg/mod")
    is_ours = folder.is_absolute() and folder.is_dir()
    return folder if is_ours and not (root and folder.resolve().is_relative_to(root)) else None

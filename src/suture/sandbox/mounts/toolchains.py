"""Which `node` or `go` a project's test command means, and what of it a program behind the wall must see.

Nothing is started to find out: programs are found on the user's own PATH, never in the project.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from suture.core.records import Language
from suture.errors import PrerequisiteError
from suture.project.languages import LANGUAGES, Interpreter, LanguageFacts, Toolchain
from suture.sandbox.mounts.interpreter import discover_interpreter
from suture.sandbox.mounts.places import in_system, require_plain


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
    """A language's programs; `None` where these are an `Interpreter`.

    Args:
        project: The project's root folder, where there is one.
        environ: The user's environment variables.
        language: Which.

    Raises:
        PrerequisiteError: They are not installed, or lie where they cannot be shown behind the wall.
    """
    facts = LANGUAGES[language]
    if not facts.program:
        return None
    root = None if project is None else project.resolve()
    found = _on_path(facts.program, root, environ)
    if found is None:
        raise PrerequisiteError(
            f"{facts.label} tests need {facts.program!r}, which is not on PATH",
            remedy=f"install it, or give a test command of another language: {facts.program} is not fetched",
        )
    shown = {} if in_system(str(found.resolve())) else _installation(found, facts)
    variables = dict(facts.variables)
    if facts.packages:
        shown |= project_packages(root, facts.packages)
    elif facts.downloaded and (modules := _plain_folder(facts.downloaded.folder(environ), root)):
        shown[str(modules)] = variables[facts.downloaded.variable] = facts.downloaded.shown_as
    own = str(found.parent if in_system(str(found)) else found.resolve().parent)
    return Toolchain(
        language=language,
        program=str(found),
        folders=(own, *(f"{place}/.bin" for place in shown.values() if place == f"/{facts.packages}")),
        shown=shown,
        variables=variables,
    )


def _on_path(program: str, root: Path | None, environ: Mapping[str, str]) -> Path | None:
    folders = [Path(entry) for entry in environ.get("PATH", os.defpath).split(os.pathsep) if entry]
    # A relative entry means whatever folder we stand in; a program of the project itself is not trusted.
    ours = [f for f in folders if f.is_absolute() and not (root and f.resolve().is_relative_to(root))]
    found = shutil.which(program, path=os.pathsep.join(map(str, ours))) if ours else None
    return Path(found) if found else None


def _installation(found: Path, facts: LanguageFacts) -> dict[str, str]:
    """What to show of programs outside the system's folders; never a whole prefix, which can be a home."""
    prefix = found.resolve().parent.parent
    marks = facts.installation
    if not all((prefix / mark).is_dir() for mark in marks):
        raise PrerequisiteError(
            f"{str(found)!r} is no plain installation: {' and '.join(marks)} are not beside it",
            remedy=f"put the folder of a real {found.name} first on PATH, not a version manager's shim",
        )
    parts = [prefix / mark for mark in marks]
    parts += [path for name in facts.beside_it if (path := prefix / name).is_file()]
    return {str(part): str(part) for part in parts}


def project_packages(root: Path | None, name: str) -> dict[str, str]:
    """What to show of a project's own packages, where it has any: at the root, where node looks last.

    Args:
        root: The project.
        name: Of the folder that holds them, such as `node_modules`.

    Raises:
        PrerequisiteError: There is a socket, a pipe or a device in it.
    """
    folder = root / name if root else None
    # A link may have been planted, to be shown a folder of ours.
    if folder is None or folder.is_symlink() or not folder.is_dir():
        return {}
    require_plain(folder)
    return {str(folder): f"/{name}"}


def _plain_folder(said: str, root: Path | None) -> Path | None:
    """A folder that is there, and none of the project's."""
    folder = Path(said)
    is_ours = folder.is_absolute() and folder.is_dir()
    return folder if is_ours and not (root and folder.resolve().is_relative_to(root)) else None

"""Find the programs that a project's test command means: `python`, `node` or `go`, and what of them to show.

A virtual environment is read, never started: an untrusted project may bring its own `.venv`, and its `python`
would run on the host. Only a `python` on the user's own PATH is started and asked, because a shim cannot be
read. `node` and `go` are only looked up on the user's PATH, never in the project.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from suture.core.records import Language
from suture.errors import PrerequisiteError
from suture.project.languages import LANGUAGES, Interpreter, LanguageFacts, Toolchain
from suture.sandbox.mounts.path_checks import (
    is_in_system_folder,
    require_installation,
    require_no_special_files,
    resolve_path,
)
from suture.sandbox.runtimes.environments import (
    find_environments,
    find_missing_packages,
    package_folders,
    read_environment,
    required_packages,
    source_roots_in,
)
from suture.sandbox.tuning import INTERPRETER_QUERY_TIMEOUT_S, MAX_NAMED_PACKAGES

DESCRIBE_CODE = (
    "import json, sys; print(json.dumps([sys.executable, sys.prefix, sys.base_prefix, "
    "'%d.%d.%d' % sys.version_info[:3], sys.path]))"
)


def discover_interpreter(
    project: Path | None, environ: Mapping[str, str], chosen: Path | None = None
) -> Interpreter:
    """Return the interpreter that `python` means for a project.

    The one that the user has named comes first, then the project's `.venv`. After these, the first candidate
    that lacks none of the packages in the project's requirement files: the active environment, another
    environment beside the project or made for it by poetry, hatch, pdm or conda, `python` on PATH. If each
    lacks something, the one that lacks least. At last, the one that runs Suture.

    Args:
        project: The project's root folder, if there is one.
        environ: The user's environment variables.
        chosen: An interpreter or an environment's folder that the user has named.

    Raises:
        PrerequisiteError: What the user has named, the project's `.venv` or the active environment exists but
            is broken. Another one is never used in its place.
    """
    root = None if project is None else Path(os.path.abspath(project))  # noqa: PTH100 - resolve() follows links
    if chosen is not None:
        return _read_named_interpreter(Path(os.path.abspath(chosen.expanduser())), root, environ)  # noqa: PTH100 - as above
    active = environ.get("VIRTUAL_ENV")
    required = required_packages(root) if root is not None else frozenset[str]()
    if root is not None and os.path.lexists(root / ".venv"):
        return _describe_missing(_read_project_environment(root, active), required)
    found = []
    for interpreter in _iterate_candidates(root, active, environ):
        missing = find_missing_packages(required, interpreter.site_packages)
        if not missing:
            return interpreter
        found.append((len(missing), interpreter))
    least = min(found, key=lambda one: one[0])[1] if found else _read_running_interpreter(root)
    return _describe_missing(least, required)


def _iterate_candidates(
    root: Path | None, active: str | None, environ: Mapping[str, str]
) -> Iterator[Interpreter]:
    """Yield the candidates in order of preference."""
    if active:
        yield read_environment(Path(active), "the active environment ($VIRTUAL_ENV)", root)
    elif conda := environ.get("CONDA_PREFIX"):
        with suppress(PrerequisiteError):  # a conda environment may lack a Python
            yield read_environment(Path(conda), "the active environment ($CONDA_PREFIX)", root)
    for prefix, origin in find_environments(root, environ) if root is not None else ():
        with suppress(PrerequisiteError):  # the user has not named this one, so a broken one is skipped
            yield _read_unnamed_environment(prefix, origin, root)
    program = shutil.which("python", path=environ.get("PATH", os.defpath))
    on_path = None if program is None else _query_python_on_path(Path(program), root, environ)
    if on_path is not None:
        yield on_path


def _describe_missing(found: Interpreter, required: Iterable[str]) -> Interpreter:
    """Return the interpreter with the missing packages added to the description of its origin."""
    missing = find_missing_packages(required, found.site_packages)
    if not missing:
        return found
    suffix = f" and {len(missing) - MAX_NAMED_PACKAGES} more" if len(missing) > MAX_NAMED_PACKAGES else ""
    return replace(
        found, origin=f"{found.origin}, which lacks {', '.join(missing[:MAX_NAMED_PACKAGES])}{suffix}"
    )


def _read_named_interpreter(path: Path, root: Path | None, environ: Mapping[str, str]) -> Interpreter:
    """Return what the user has named: an environment's folder, its program, or an installation's program.

    Raises:
        PrerequisiteError: It does not exist, or does not work.
    """
    prefix = path if os.path.isdir(path) else path.parent.parent  # noqa: PTH112 - Path.is_dir may raise
    markers = ("pyvenv.cfg", "conda-meta")
    if any(os.path.exists(prefix / mark) for mark in markers):  # noqa: PTH110 - as above
        return read_environment(prefix, "the Python of sandbox.python", root)
    program = path / "bin" / "python" if prefix == path else path
    found = _query_python_on_path(program, root, environ) if os.access(program, os.X_OK) else None
    if found is None:
        raise PrerequisiteError(
            f"{str(path)!r} is not a working Python", remedy="name an interpreter or an environment's folder"
        )
    return replace(found, origin="the Python of sandbox.python")


def _read_unnamed_environment(prefix: Path, origin: str, root: Path | None) -> Interpreter:
    """Read an environment that the user has not named; the project's files may be the reason that it is
    considered.

    Raises:
        PrerequisiteError: It is broken, or is not a plain environment.
    """
    found = read_environment(prefix, origin, root)
    if root is None:
        return found
    require_installation(Path(found.base_prefix), Path(found.site_packages[0]).parent.name, root)
    return replace(found, project=str(root))


def _read_project_environment(root: Path, active: str | None) -> Interpreter:
    """Return a project's own `.venv`. The project's files decide what is shown of it, unless the user has
    activated it.

    Raises:
        PrerequisiteError: It is broken, or is a link that leads out of the project.
    """
    prefix, origin = root / ".venv", "the project's .venv"
    real = resolve_path(prefix)
    if active and resolve_path(active) == real:
        return read_environment(prefix, origin, root)
    if not real.is_relative_to(resolve_path(root)):
        raise PrerequisiteError(
            f"{origin} leads out of the project, to {str(real)!r}",
            remedy="activate that environment, so that you choose it and not the project",
        )
    return _read_unnamed_environment(prefix, origin, root)


def get_own_interpreter() -> Interpreter:
    """Return the installation that runs Suture, without packages, for Suture's own programs inside the
    sandbox.
    """
    executable = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    return Interpreter(
        executable=executable,
        prefix=sys.base_prefix,
        base_prefix=sys.base_prefix,
        version="{}.{}.{}".format(*sys.version_info[:3]),
        site_packages=(),
        origin="the Python that runs Suture",
    )


def _query_python_on_path(found: Path, root: Path | None, environ: Mapping[str, str]) -> Interpreter | None:
    if not found.is_absolute():
        return None  # a relative PATH entry means whatever the current folder is
    if (found.parent.parent / "pyvenv.cfg").is_file():
        return read_environment(found.parent.parent, f"python on PATH ({found})", root)
    if root is not None and found.is_relative_to(root):
        return None  # a program of the project itself must not run on the host
    try:
        answer = subprocess.run(
            [str(found), "-I", "-c", DESCRIBE_CODE],
            env=dict(environ),
            cwd=root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=INTERPRETER_QUERY_TIMEOUT_S,
            check=True,
        )
        executable, prefix, base_prefix, version, path = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None  # for example a pyenv shim with no version chosen: there is no `python` here
    return Interpreter(
        executable=executable,
        prefix=prefix,
        base_prefix=base_prefix,
        version=version,
        site_packages=package_folders(path),
        origin=f"python on PATH ({found})",
        source_roots=source_roots_in(path, root),
    )


def _read_running_interpreter(root: Path | None) -> Interpreter:
    origin = "the Python that runs Suture (no .venv, $VIRTUAL_ENV or python on PATH)"
    if (Path(sys.prefix) / "pyvenv.cfg").is_file():
        return read_environment(Path(sys.prefix), origin, root)
    return Interpreter(
        executable=sys.executable,
        prefix=sys.prefix,
        base_prefix=sys.base_prefix,
        version="{}.{}.{}".format(*sys.version_info[:3]),
        site_packages=package_folders(sysconfig.get_paths()[key] for key in ("purelib", "platlib")),
        origin=origin,
    )


def discover_programs(
    project: Path | None, environ: Mapping[str, str], language: Language, python: Path | None = None
) -> Interpreter:
    """Return what `python` means for a project and what else its test command needs; see
    `discover_interpreter`.

    Args:
        project: The project's root folder, if there is one.
        environ: The user's environment variables.
        language: The language of the tests.
        python: The interpreter that the user has named.

    Raises:
        PrerequisiteError: Python's environment is broken, or the language's programs are missing.
    """
    found = discover_interpreter(project, environ, python)
    return replace(found, toolchain=discover_toolchain(project, environ, language))


def discover_toolchain(
    project: Path | None, environ: Mapping[str, str], language: Language
) -> Toolchain | None:
    """Return a language's programs; `None` for Python, whose programs are an `Interpreter`.

    Args:
        project: The project's root folder, if there is one.
        environ: The user's environment variables.
        language: The language.

    Raises:
        PrerequisiteError: They are not installed, or lie where they cannot be shown inside the sandbox.
    """
    facts = LANGUAGES[language]
    if not facts.program:
        return None
    root = None if project is None else project.resolve()
    found = _find_on_path(facts.program, root, environ)
    if found is None:
        raise PrerequisiteError(
            f"{facts.label} tests need {facts.program!r}, which is not on PATH",
            remedy="install it, or use a test command of another language; Suture does not install it",
        )
    shown = {} if is_in_system_folder(str(found.resolve())) else _installation_parts(found, facts)
    variables = dict(facts.variables)
    if facts.packages:
        shown |= project_packages(root, facts.packages)
    elif facts.package_cache and (modules := _plain_folder(facts.package_cache.folder(environ), root)):
        shown[str(modules)] = variables[facts.package_cache.variable] = facts.package_cache.mount_path
    own = str(found.parent if is_in_system_folder(str(found)) else found.resolve().parent)
    return Toolchain(
        language=language,
        program=str(found),
        folders=(own, *(f"{place}/.bin" for place in shown.values() if place == f"/{facts.packages}")),
        shown=shown,
        variables=variables,
    )


def _find_on_path(program: str, root: Path | None, environ: Mapping[str, str]) -> Path | None:
    folders = [Path(entry) for entry in environ.get("PATH", os.defpath).split(os.pathsep) if entry]
    # A relative entry means whatever the current folder is, and a program of the project itself is not
    # trusted.
    trusted_folders = [
        f for f in folders if f.is_absolute() and not (root and f.resolve().is_relative_to(root))
    ]
    found = (
        shutil.which(program, path=os.pathsep.join(map(str, trusted_folders))) if trusted_folders else None
    )
    return Path(found) if found else None


def _installation_parts(found: Path, facts: LanguageFacts) -> dict[str, str]:
    """Return what to show of programs outside the system's folders; never a whole prefix, which can be a home
    folder.
    """
    prefix = found.resolve().parent.parent
    markers = facts.installation
    if not all((prefix / mark).is_dir() for mark in markers):
        raise PrerequisiteError(
            f"{str(found)!r} is not a plain installation: {' and '.join(markers)} are not beside it",
            remedy=f"put the folder of a real {found.name} first on PATH instead of a version manager's shim",
        )
    parts = [prefix / mark for mark in markers]
    parts += [path for name in facts.optional_installation if (path := prefix / name).is_file()]
    return {str(part): str(part) for part in parts}


def project_packages(root: Path | None, name: str) -> dict[str, str]:
    """Return what to show of a project's own packages, at the root of the sandbox, where node looks last.

    Args:
        root: The project.
        name: The folder that holds them, such as `node_modules`.

    Raises:
        PrerequisiteError: The folder contains a socket, a pipe or a device.
    """
    folder = root / name if root else None
    # A link may have been planted, so that one of the user's folders is shown.
    if folder is None or folder.is_symlink() or not folder.is_dir():
        return {}
    require_no_special_files(folder)
    return {str(folder): f"/{name}"}


def _plain_folder(path_text: str, root: Path | None) -> Path | None:
    """Return a folder that exists and does not belong to the project."""
    folder = Path(path_text)
    is_ours = folder.is_absolute() and folder.is_dir()
    return folder if is_ours and not (root and folder.resolve().is_relative_to(root)) else None

"""Find the programs that a project's test command means: `python`, `node` or `go`, and which parts to show.

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
    ENVIRONMENT_MARKERS,
    find_environments,
    find_missing_packages,
    follow_rustup,
    package_folders,
    read_environment,
    required_packages,
    source_roots_in,
)
from suture.sandbox.tuning import INTERPRETER_QUERY_TIMEOUT_S, MAX_NAMED_PACKAGES

PROGRAMS_MOUNT = "/programs"
"""Where the sandbox mounts single programs of a language, such as one in `~/.cargo/bin`."""
DESCRIBE_CODE = (
    "import json, sys; print(json.dumps([sys.executable, sys.prefix, sys.base_prefix, "
    "'%d.%d.%d' % sys.version_info[:3], sys.path]))"
)
"""Makes a Python describe itself: executable, prefix, base prefix, version, search path."""


def discover_interpreter(
    project: Path | None, environ: Mapping[str, str], named: Path | None = None
) -> Interpreter:
    """Return the interpreter that `python` means for a project.

    The one that the user has named is chosen first, then the project's `.venv`. Otherwise it is the first
    candidate that has all packages in the project's requirement files, or the one that lacks the least. The
    candidates are the active environment, other environments of the project, and `python` on PATH. Without
    any, it is the Python that runs Suture.

    Args:
        project: The project's root folder, if there is one.
        environ: The user's environment variables.
        named: An interpreter or an environment's folder that the user has named.

    Raises:
        PrerequisiteError: What the user has named, the project's `.venv` or the active environment exists but
            is broken. Another one is never used in its place.
    """
    root = None if project is None else Path(os.path.abspath(project))  # noqa: PTH100 - resolve() follows links
    if named is not None:
        return _read_named_interpreter(Path(os.path.abspath(named.expanduser())), root, environ)  # noqa: PTH100 - as above
    active = environ.get("VIRTUAL_ENV")
    required = required_packages(root) if root is not None else frozenset[str]()
    if root is not None and os.path.lexists(root / ".venv"):
        return _describe_missing(_read_project_environment(root, active), required)
    candidates = []
    for interpreter in _iterate_candidates(root, active, environ):
        missing = find_missing_packages(required, interpreter.site_packages)
        if not missing:
            return interpreter
        candidates.append((len(missing), interpreter))
    if not candidates:
        return _describe_missing(_read_running_interpreter(root), required)
    return _describe_missing(min(candidates, key=lambda candidate: candidate[0])[1], required)


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
    interpreter = None if program is None else _query_python(Path(program), root, environ)
    if interpreter is not None:
        yield interpreter


def _describe_missing(interpreter: Interpreter, required: Iterable[str]) -> Interpreter:
    """Return the interpreter with the missing packages added to the description of its origin."""
    missing = find_missing_packages(required, interpreter.site_packages)
    if not missing:
        return interpreter
    names = ", ".join(missing[:MAX_NAMED_PACKAGES])
    if len(missing) > MAX_NAMED_PACKAGES:
        names += f" and {len(missing) - MAX_NAMED_PACKAGES} more"
    return replace(interpreter, origin=f"{interpreter.origin}, which lacks {names}")


def _read_named_interpreter(path: Path, root: Path | None, environ: Mapping[str, str]) -> Interpreter:
    """Return what the user has named: an environment's folder, its program, or an installation's program."""
    prefix = path if os.path.isdir(path) else path.parent.parent  # noqa: PTH112 - Path.is_dir may raise
    if any(os.path.exists(prefix / marker) for marker in ENVIRONMENT_MARKERS):  # noqa: PTH110 - as above
        return read_environment(prefix, "the Python of sandbox.python", root)
    program = path / "bin" / "python" if prefix == path else path
    interpreter = _query_python(program, root, environ) if os.access(program, os.X_OK) else None
    if interpreter is None:
        raise PrerequisiteError(
            f"{str(path)!r} is not a working Python", remedy="name an interpreter or an environment's folder"
        )
    return replace(interpreter, origin="the Python of sandbox.python")


def _read_unnamed_environment(prefix: Path, origin: str, root: Path | None) -> Interpreter:
    """Read an environment that the user has not named, so that the project's files may have chosen it."""
    interpreter = read_environment(prefix, origin, root)
    if root is None:
        return interpreter
    library = Path(interpreter.site_packages[0]).parent.name
    require_installation(Path(interpreter.base_prefix), library, root)
    return replace(interpreter, project=str(root))


def _read_project_environment(root: Path, active: str | None) -> Interpreter:
    """Return a project's own `.venv`. Unless the user has activated it, it must not lead out of the project."""
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
    """Return the installation that runs Suture, without packages, for Suture's own programs in a sandbox."""
    executable = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    return Interpreter(
        executable=executable,
        prefix=sys.base_prefix,
        base_prefix=sys.base_prefix,
        version="{}.{}.{}".format(*sys.version_info[:3]),
        site_packages=(),
        origin="the Python that runs Suture",
    )


def _query_python(program: Path, root: Path | None, environ: Mapping[str, str]) -> Interpreter | None:
    """Start a `python` on the host to ask what it is; an environment is read instead.

    Return `None` if it must not be started, or does not answer.
    """
    origin = f"python on PATH ({program})"
    if not program.is_absolute():
        return None  # a relative PATH entry means whatever the current folder is
    if (program.parent.parent / "pyvenv.cfg").is_file():
        return read_environment(program.parent.parent, origin, root)
    if root is not None and program.is_relative_to(root):
        return None  # a program of the project itself must not run on the host
    try:
        completed = subprocess.run(
            [str(program), "-I", "-c", DESCRIBE_CODE],
            env=dict(environ),
            cwd=root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=INTERPRETER_QUERY_TIMEOUT_S,
            check=True,
        )
        executable, prefix, base_prefix, version, path = json.loads(completed.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None  # for example a pyenv shim with no version chosen: there is no `python` here
    return Interpreter(
        executable=executable,
        prefix=prefix,
        base_prefix=base_prefix,
        version=version,
        site_packages=package_folders(path),
        origin=origin,
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
    project: Path | None,
    environ: Mapping[str, str],
    language: Language,
    python: Path | None = None,
    *,
    folder: str = "",
) -> Interpreter:
    """Return what `python` means for a project, and what else its test command needs.

    Args:
        project: The project's root folder, if there is one.
        environ: The user's environment variables.
        language: The language of the tests.
        python: The interpreter that the user has named.
        folder: The folder of the project in which the tests run; it may have a `.venv` of its own.

    Raises:
        PrerequisiteError: Python's environment is broken, or the language's programs are missing.
    """
    has_own_environment = bool(
        project and folder and python is None and os.path.lexists(project / folder / ".venv")
    )
    if project is not None and has_own_environment:
        interpreter = discover_interpreter(project / folder, environ)
        roots = tuple(os.path.normpath(os.path.join(folder, root)) for root in interpreter.source_roots)  # noqa: PTH118
        interpreter = replace(interpreter, source_roots=roots)
    else:
        interpreter = discover_interpreter(project, environ, python)
    return replace(interpreter, toolchain=discover_toolchain(project, environ, language))


def discover_toolchain(
    project: Path | None, environ: Mapping[str, str], language: Language
) -> Toolchain | None:
    """Return a language's programs; `None` for Python, whose programs are an `Interpreter`.

    Args:
        project: The project's root folder, if there is one.
        environ: The user's environment variables.

    Raises:
        PrerequisiteError: They are not installed, or lie where they cannot be shown inside the sandbox.
    """
    facts = LANGUAGES[language]
    if not facts.program:
        return None
    root = None if project is None else project.resolve()
    program = _find_on_path(facts.program, root, environ)
    if program is None:
        raise PrerequisiteError(
            f"{facts.label} tests need {facts.program!r}, which is not on PATH",
            remedy="install it, or use a test command of another language; Suture does not install it",
        )
    program = follow_rustup(program, environ)
    shown = {} if is_in_system_folder(str(program.resolve())) else _installation_parts(program, facts)
    variables = dict(facts.variables)
    if facts.packages:
        shown |= project_packages(root, facts.packages)
    elif facts.package_cache and (modules := _plain_folder(facts.package_cache.folder(environ), root)):
        shown[str(modules)] = facts.package_cache.mount_path
        if facts.package_cache.variable:
            variables[facts.package_cache.variable] = facts.package_cache.mount_path
    others, other_folders = _show_other_programs(facts, root, environ)
    shown |= others
    program_folder = program.parent if is_in_system_folder(str(program)) else program.resolve().parent
    bin_folders = [f"{target}/.bin" for target in shown.values() if target == f"/{facts.packages}"]
    return Toolchain(
        language=language,
        program=str(program),
        folders=tuple(dict.fromkeys((str(program_folder), *bin_folders, *other_folders))),
        shown=shown,
        variables=variables,
    )


def _find_on_path(program: str, root: Path | None, environ: Mapping[str, str]) -> Path | None:
    folders = [Path(entry) for entry in environ.get("PATH", os.defpath).split(os.pathsep) if entry]
    # A relative entry means whatever the current folder is, and a program of the project itself is not
    # trusted.
    trusted_folders = [
        str(folder)
        for folder in folders
        if folder.is_absolute() and not (root and folder.resolve().is_relative_to(root))
    ]
    # An empty PATH would mean the default one.
    path = shutil.which(program, path=os.pathsep.join(trusted_folders)) if trusted_folders else None
    return Path(path) if path else None


def _show_other_programs(
    facts: LanguageFacts, root: Path | None, environ: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Return (mounts as source -> target, folders for PATH) for further programs outside of the system's folders."""
    shown: dict[str, str] = {}
    folders: list[str] = []
    for name, parts in facts.other_programs.items():
        found = _find_on_path(name, root, environ)
        program = found.resolve() if found is not None else None
        if program is None or is_in_system_folder(str(program)):
            continue
        if parts:
            paths = (program.parent.parent / part for part in parts)
            shown |= {str(path): str(path) for path in paths if path.is_dir()}
            folders.append(str(program.parent))
        else:
            shown[str(program)] = f"{PROGRAMS_MOUNT}/{name}"
            folders.append(PROGRAMS_MOUNT)
    return shown, folders


def _installation_parts(program: Path, facts: LanguageFacts) -> dict[str, str]:
    """Return mounts for a program outside the system's folders, as source -> target.

    The whole prefix is never shown, because it can be a home folder.
    """
    prefix = program.resolve().parent.parent
    markers = facts.installation
    if not all((prefix / marker).is_dir() for marker in markers):
        raise PrerequisiteError(
            f"{str(program)!r} is not a plain installation: {' and '.join(markers)} are not beside it",
            remedy=f"put the folder of a real {program.name} first on PATH instead of a version manager's shim",
        )
    parts = [prefix / marker for marker in markers]
    parts += [path for name in facts.optional_installation if (path := prefix / name).is_file()]
    return {str(part): str(part) for part in parts}


def project_packages(root: Path | None, name: str) -> dict[str, str]:
    """Return a mount, as source -> target, for the folder `name` of a project, such as `node_modules`.

    The target is at the root of the sandbox, where node looks last.

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
    if not folder.is_absolute() or not folder.is_dir():
        return None
    return None if root and folder.resolve().is_relative_to(root) else folder

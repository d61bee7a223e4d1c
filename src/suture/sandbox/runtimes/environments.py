"""Find and read a project's virtual environments, the toolchain of rustup, and Suture's own pytest to lend.

Environments are in the project, next to it, and in the folders of its tools.

A folder outside the project is considered only if the user's own variables name it, if its tool has put the
project's own path into the folder's name or into a file there, or if the user's conda lists it, so that no file of a
project can choose another folder. Everything is read from files; nothing is started.

With rustup, `cargo` on PATH is a link to rustup itself, which needs the user's home to find the real program.
"""

from __future__ import annotations

import ast
import base64
import glob
import hashlib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from itertools import islice
from pathlib import Path
from typing import Any

from suture.core.safe_files import parse_toml
from suture.errors import PrerequisiteError
from suture.project.languages import Interpreter
from suture.project.python_source.parsing import parse_module
from suture.sandbox.mounts.path_checks import read_small_text, resolve_path
from suture.sandbox.tuning import MAX_ENVIRONMENTS_PER_PATTERN, MAX_LISTED_ENVIRONMENTS

ENVIRONMENT_PATTERNS = (
    "venv", "env", ".env", ".conda", ".hatch/*", ".pixi/envs/*", "envs/*", ".tox/*", ".nox/*",
)  # fmt: skip
"""Common names of environments in a project; tox and nox create one for each session."""
PACKAGE_NAME = re.compile(r"[A-Za-z0-9](?:[\w.-]{0,200}[A-Za-z0-9])?")
"""Matches the name at the start of a requirement."""
CONDA_NAME = re.compile(r"^name:[ \t]*[\"']?([\w.-]{1,200})", re.MULTILINE)
"""Matches the name of an environment in conda's `environment.yml`."""
TEST_GROUPS = re.compile(r"tests?|testing|dev|develop(?:ment)?|ci", re.IGNORECASE)
"""Matches the name of a group of packages that the tests need."""
REQUIREMENT_FILES = (
    "requirements.txt",
    "requirements-test.txt",
    "requirements-dev.txt",
    "requirements/test.txt",
)

ENVIRONMENT_MARKERS = ("pyvenv.cfg", "conda-meta")
"""Paths that mark a virtual environment, and one of conda."""
LIBRARY_FOLDERS = ("lib", "lib64")
PACKAGE_FOLDERS = ("site-packages", "dist-packages")


def find_environments(root: Path, environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Yield `(folder, how it was found)` for each environment of a project, best first.

    `root` is absolute, and `environ` has the user's environment variables.
    """
    own = environ.get("UV_PROJECT_ENVIRONMENT")  # instead of `.venv`; a relative path is one of the project
    if own and _is_environment(root / own):
        yield root / own, "uv's environment of the project ($UV_PROJECT_ENVIRONMENT)"
    for pattern in ENVIRONMENT_PATTERNS:
        # The parent, such as `envs`, may be a link out of the project as well; then it is not even listed.
        if not resolve_path((root / pattern).parent).is_relative_to(resolve_path(root)):
            continue
        for path in _glob_some(root, pattern):
            if not path.is_symlink() and _is_environment(path):
                yield path, f"the project's {path.relative_to(root).as_posix()}"
    home = environ.get("HOME")
    if home and Path(home).is_absolute():
        for tool, path in _find_tool_environments(root, Path(home), environ):
            if _is_environment(path):
                yield path, f"{tool}'s environment of the project"


def _is_environment(path: Path) -> bool:
    """Return whether a folder has the marker and the interpreter of an environment."""
    # os.path is used because Path raises for unreadable folders.
    has_marker = any(os.path.exists(path / marker) for marker in ENVIRONMENT_MARKERS)  # noqa: PTH110
    return has_marker and os.path.isfile(path / "bin" / "python")  # noqa: PTH113


def _find_tool_environments(root: Path, home: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield folders of tools that keep their environments in one place and identify a project by its path."""
    real = Path(os.path.realpath(root))
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    sha256 = hashlib.sha256(os.fsencode(real)).digest()
    md5 = hashlib.md5(os.fsencode(real), usedforsecurity=False).digest()
    sha256_id, md5_id = (base64.urlsafe_b64encode(digest).decode()[:8] for digest in (sha256, md5))
    poetry_cache = Path(environ.get("POETRY_CACHE_DIR") or cache / "pypoetry")
    poetry = Path(environ.get("POETRY_VIRTUALENVS_PATH") or poetry_cache / "virtualenvs")
    hatch = Path(environ.get("HATCH_DATA_DIR") or data / "hatch")
    # Each tool names a project's folder by the first letters of the hash of its path.
    yield from (("poetry", path) for path in _glob_some(poetry, f"*-{sha256_id}-py3*"))
    yield from (("hatch", path) for path in _glob_some(hatch / "env" / "virtual", f"*/{sha256_id}/*"))
    yield from (("pdm", path) for path in _glob_some(data / "pdm" / "venvs", f"*-{md5_id}-*"))
    # pipenv and virtualenvwrapper write the project's path into a file of the environment.
    shared = environ.get("WORKON_HOME")
    for tool, folder in (
        ("pipenv", shared or data / "virtualenvs"),
        ("virtualenvwrapper", home / ".virtualenvs"),
    ):
        for path in _glob_some(Path(folder), "*"):
            if read_small_text(path / ".project").strip() in (str(root), str(real)):
                yield tool, path
    conda_name = CONDA_NAME.search(read_small_text(root / "environment.yml"))
    if conda_name:
        for line in read_small_text(home / ".conda" / "environments.txt").splitlines():
            path = Path(line.strip())
            if path.is_absolute() and path.name == conda_name[1]:
                yield "conda", path


def _glob_some(folder: Path, pattern: str) -> Iterator[Path]:
    """Yield the first paths that match; of a folder with very many, only some are sorted."""
    if folder.is_absolute():
        paths = sorted(islice(folder.glob(pattern), MAX_LISTED_ENVIRONMENTS))
        yield from paths[:MAX_ENVIRONMENTS_PER_PATTERN]


def required_packages(root: Path) -> frozenset[str]:
    """Return the packages that a project requires on every machine, including those of its test groups."""
    try:
        table: dict[str, Any] = parse_toml(read_small_text(root / "pyproject.toml"))
    except ValueError:
        table = {}
    lines: list[object] = []
    project = _table_or_empty(table, "project")
    lines += _list_or_empty(project.get("dependencies"))
    optional, groups = (
        _table_or_empty(project, "optional-dependencies"),
        _table_or_empty(table, "dependency-groups"),
    )
    for name, group in (*optional.items(), *groups.items()):
        if TEST_GROUPS.fullmatch(name):
            lines += _list_or_empty(group)
    poetry = _table_or_empty(_table_or_empty(table, "tool"), "poetry")
    # The entry `python` bounds the version of Python itself.
    lines += [name for name in _table_or_empty(poetry, "dependencies") if name != "python"]
    for name, group in _table_or_empty(poetry, "group").items():
        if TEST_GROUPS.fullmatch(name) and isinstance(group, dict):
            lines += _table_or_empty(group, "dependencies")
    for requirement_file in REQUIREMENT_FILES:
        lines += read_small_text(root / requirement_file).splitlines()
    return frozenset(_parse_package_names(line for line in lines if isinstance(line, str)))


def _parse_package_names(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        match = PACKAGE_NAME.match(line.strip())
        # A `;` restricts a requirement to some machines; an `@` or a slash means that it comes from an
        # address.
        if match and ";" not in line and "/" not in line.partition("#")[0]:
            yield _normalize_name(match[0])


def find_missing_packages(required: Iterable[str], site_packages: Iterable[str]) -> tuple[str, ...]:
    """Return the required packages that no folder of installed packages contains."""
    installed: set[str] = set()
    for folder in site_packages:
        try:
            names = [path.name for path in Path(folder).iterdir()]
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info", ".egg-link")):
                installed.add(_normalize_name(name.rpartition(".")[0].partition("-")[0]))
    return tuple(sorted(set(required) - installed))


def _normalize_name(name: str) -> str:
    """Return a package's name as it is compared: `A_b.c` and `a-b-c` are the same (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _table_or_empty(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = table.get(name)
    return value if isinstance(value, dict) else {}


def _list_or_empty(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def read_environment(prefix: Path, origin: str, root: Path | None) -> Interpreter:
    """Read a virtual (or conda) environment from its files.

    Args:
        origin: How it was chosen, for people.
        root: The project's root, to find editable installs.

    Raises:
        PrerequisiteError: It is not a working environment.
    """
    executable = prefix / "bin" / "python"
    if not os.path.isfile(executable):  # noqa: PTH113 - Path.is_file raises where a link leads to a closed folder
        raise _broken_environment(prefix, origin, "bin/python is missing or leads nowhere")
    packages = sorted((prefix / "lib").glob("python3.*/site-packages"))
    if not packages:
        raise _broken_environment(prefix, origin, "it has no lib/python3.*/site-packages")
    settings = _read_pyvenv(prefix / "pyvenv.cfg")
    base = _find_base_installation(prefix, settings.get("home"), packages[-1].parent.name)
    if base is None:
        raise _broken_environment(
            prefix, origin, "its bin/python and pyvenv.cfg do not lead to one Python installation"
        )
    folder_version = packages[-1].parent.name.removeprefix("python")
    version = settings.get("version", settings.get("version_info", folder_version))
    match = re.match(r"\d+\.\d+(\.\d+)?", version)
    return Interpreter(
        executable=str(executable),
        prefix=str(prefix),
        base_prefix=str(base),
        version=match.group() if match else folder_version,
        site_packages=(str(packages[-1]),),
        origin=origin,
        source_roots=source_roots_in(_read_pth_entries(packages[-1]), root),
    )


def _find_base_installation(prefix: Path, home: str | None, library: str) -> Path | None:
    """Return the installation that an environment is based on; `None` if the two do not belong together.

    An untrusted project may have written both `pyvenv.cfg` and the link at `bin/python`. `home` is the folder
    of the installation's programs, as `pyvenv.cfg` names it; `None` for conda.
    """
    real = Path(os.path.realpath(prefix / "bin" / "python"))
    is_copied = real.parent == Path(os.path.realpath(prefix / "bin"))
    if home is None:
        base = prefix if is_copied else None
    elif is_copied:
        base = Path(home).parent if os.access(Path(home, library), os.X_OK) else None
    elif real.parent == Path(os.path.realpath(home)):
        base = Path(home).parent
    else:  # a folder of links to interpreters, such as uv's
        base = real.parent.parent if Path(os.path.realpath(Path(home, real.name))) == real else None
    if base is None or not base.is_absolute() or not real.name.startswith("python"):
        return None
    # isfile, because Path.is_file raises for an unreadable folder
    has_library = any(os.path.isfile(base / folder / library / "os.py") for folder in LIBRARY_FOLDERS)  # noqa: PTH113
    return base if has_library else None


def _broken_environment(prefix: Path, origin: str, reason: str) -> PrerequisiteError:
    return PrerequisiteError(
        f"{origin} at {str(prefix)!r} is not a working environment: {reason}",
        remedy="create it again with `python3 -m venv`, or remove it",
    )


def _read_pyvenv(path: Path) -> dict[str, str]:
    pairs = (line.partition("=") for line in read_small_text(path).splitlines() if "=" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _read_pth_entries(packages: Path) -> list[str]:
    # Lines that start with `import` are code, which only `site` inside the sandbox may run.
    entries: list[str] = []
    for path in sorted(packages.glob("*.pth")):
        lines = [line for line in read_small_text(path).splitlines() if line.strip()]
        entries += [line for line in lines if not line.startswith(("#", "import ", "import\t"))]
    return [str(packages / entry.strip()) for entry in entries] + _read_editable_finders(packages)


def _read_editable_finders(packages: Path) -> list[str]:
    """Return the folders of packages that setuptools' editable installs find by a table instead of a path."""
    folders: list[str] = []
    # setuptools writes a module of this name, with the table in the constant `MAPPING`.
    for path in sorted(packages.glob("__editable___*_finder.py")):
        tree = parse_module(read_small_text(path))
        for statement in tree.body if tree is not None else ():
            if ast.unparse(statement).startswith(("MAPPING: ", "MAPPING = ")):
                folders += _folders_in_mapping(getattr(statement, "value", None))
    return list(dict.fromkeys(folders))


def _folders_in_mapping(table: ast.expr | None) -> Iterator[str]:
    """Yield the folders from which the modules of a table, name -> location, can be imported."""
    if not isinstance(table, ast.Dict):
        return
    for key, value in zip(table.keys, table.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
            suffix = "/" + str(key.value).replace(".", "/")
            if str(value.value).endswith(suffix):
                yield str(value.value).removesuffix(suffix) or "/"


def package_folders(path: Iterable[str]) -> tuple[str, ...]:
    """Return the folders of installed packages in a search path."""
    return tuple(dict.fromkeys(entry for entry in path if Path(entry).name in PACKAGE_FOLDERS))


def source_roots_in(path: Iterable[str], root: Path | None) -> tuple[str, ...]:
    """Return the folders of a project that are in a search path, relative to its root."""
    if root is None:
        return ()
    real = resolve_path(root)
    # isdir, because Path.is_dir raises for an unreadable folder, and the project may have written these
    # entries.
    folders = (resolve_path(entry) for entry in path if entry and os.path.isdir(entry))  # noqa: PTH112
    names = (
        folder.relative_to(real).as_posix()
        for folder in folders
        if folder.is_relative_to(real) and folder.name not in PACKAGE_FOLDERS
    )
    # What is in the project's environment is installed, and is not source of the project.
    return tuple(dict.fromkeys(name for name in names if not name.startswith(".venv")))


def follow_rustup(program: Path, environ: Mapping[str, str]) -> Path:
    """Return the program of rustup's toolchain that a link to rustup starts; any other program as it is.

    The toolchain is that of `RUSTUP_TOOLCHAIN`, else the user's default. A toolchain that a project names is not
    considered.

    Raises:
        PrerequisiteError: There is no such toolchain.
    """
    if program.resolve().name != "rustup":
        return program
    home = Path(environ.get("RUSTUP_HOME") or f"{environ.get('HOME', '')}/.rustup")
    try:
        settings = tomllib.loads((home / "settings.toml").read_text("utf-8"))
    except (OSError, ValueError):
        settings = {}
    name = environ.get("RUSTUP_TOOLCHAIN") or str(settings.get("default_toolchain", ""))
    # The folder of `stable` is named `stable-x86_64-unknown-linux-gnu`.
    folders = [home / "toolchains" / name, *sorted((home / "toolchains").glob(f"{glob.escape(name)}-*"))]
    programs = [folder / "bin" / program.name for folder in folders if name]
    real = next(filter(Path.is_file, programs), None)
    if real is None:
        is_set = bool(environ.get("RUSTUP_TOOLCHAIN"))
        raise PrerequisiteError(
            f"rustup has no {program.name!r} in its toolchain {name or '(none)'!r}",
            remedy="unset RUSTUP_TOOLCHAIN" if is_set else "choose a toolchain: rustup default stable",
        )
    return real


DISTRIBUTIONS = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")
"""Pytest and what it needs; all of it is written in Python, and works on any version from `MIN_VERSION` on."""
MIN_VERSION = (3, 11)
"""Older Pythons also need packages that this list lacks."""


def lend_pytest(interpreter: Interpreter) -> Interpreter | None:
    """Return an interpreter that has pytest; `None` if it has none and cannot run Suture's."""
    folders = [Path(folder) for folder in interpreter.site_packages]
    if any((folder / "pytest").is_dir() for folder in folders):
        return interpreter
    version = tuple(int(part) for part in interpreter.version.split(".")[:2] if part.isdigit())
    if version < MIN_VERSION:
        return None
    # What the project itself has, perhaps in another version, must not be hidden from its code.
    lacking = [path for path in _find_own_packages() if not any((f / path.name).exists() for f in folders)]
    return replace(interpreter, loaned_pytest=tuple(map(str, lacking)))


@cache
def _find_own_packages() -> tuple[Path, ...]:
    """Return the top-level packages of pytest and its requirements, and their metadata, which pluggy reads."""
    paths: dict[Path, None] = {}
    for name in DISTRIBUTIONS:
        try:
            own = distribution(name)
        except PackageNotFoundError:
            continue
        kinds = (".py", "")  # the file METADATA has no suffix
        tops = {file.parts[0] for file in own.files or () if file.suffix in kinds and file.parts[0] != ".."}
        paths |= dict.fromkeys(Path(str(own.locate_file(top))).resolve() for top in sorted(tops))
    return tuple(paths)

"""A project's virtual environments: where they lie, beside it and in its tools' folders, and what they hold.

A folder outside of the project is looked at only where its tool has put the project's own path into the
name, or where the user's conda lists it: no file of a project chooses any other. All is read from files;
nothing here is started.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from suture.core.safe_files import parse_toml
from suture.errors import PrerequisiteError
from suture.project.languages import Interpreter
from suture.project.python_source.parsing import parsed
from suture.sandbox.mounts.path_checks import read_small_text, resolve_path
from suture.sandbox.tuning import MAX_ENVIRONMENTS_PER_PATTERN, MAX_LISTED_ENVIRONMENTS

BESIDE = ("venv", "env", ".env", ".conda", ".hatch/*", "envs/*", ".tox/*", ".nox/*")
"""As people and tools call them; tox and nox make one for each of their sessions."""
NAME = re.compile(r"[A-Za-z0-9](?:[\w.-]{0,200}[A-Za-z0-9])?")
CONDA_NAME = re.compile(r"^name:[ \t]*[\"']?([\w.-]{1,200})", re.MULTILINE)
TEST_GROUPS = re.compile(r"tests?|testing|dev|develop(?:ment)?|ci", re.IGNORECASE)
PAPERS = ("requirements.txt", "requirements-test.txt", "requirements-dev.txt", "requirements/test.txt")

LIBRARY_FOLDERS = ("lib", "lib64")
PACKAGE_FOLDERS = ("site-packages", "dist-packages")


def environments_of(root: Path, environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Folders that look like an environment of a project, and how each was found, the likeliest first.

    Args:
        root: The project's root folder, absolute.
        environ: The user's environment variables.
    """
    for pattern in BESIDE:
        # Also the folder above it may be a link out of the project, such as `envs`: it is not even listed.
        inside = resolve_path((root / pattern).parent).is_relative_to(resolve_path(root))
        for path in _some(root, pattern) if inside else ():
            if not path.is_symlink() and _is_environment(path):
                yield path, f"the project's {path.relative_to(root).as_posix()}"
    home = environ.get("HOME")
    if home and Path(home).is_absolute():
        for tool, path in _central(root, Path(home), environ):
            if _is_environment(path):
                yield path, f"{tool}'s environment of the project"


def _is_environment(path: Path) -> bool:
    # os.path's answers, because Path's raise where a folder is closed to us.
    marked = any(os.path.exists(path / mark) for mark in ("pyvenv.cfg", "conda-meta"))  # noqa: PTH110
    return marked and os.path.isfile(path / "bin" / "python")  # noqa: PTH113


def _central(root: Path, home: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Folders of tools that keep their environments in one place; each knows a project by its path."""
    real = Path(os.path.realpath(root))
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    by_sha = base64.urlsafe_b64encode(hashlib.sha256(os.fsencode(real)).digest()).decode()[:8]
    by_md5 = base64.urlsafe_b64encode(
        hashlib.new("md5", os.fsencode(real), usedforsecurity=False).digest()
    ).decode()[:8]
    poetry = Path(environ.get("POETRY_VIRTUALENVS_PATH") or cache / "pypoetry" / "virtualenvs")
    yield from (("poetry", path) for path in _some(poetry, f"*-{by_sha}-py3*"))
    yield from (("hatch", path) for path in _some(data / "hatch" / "env" / "virtual", f"*/{by_sha}/*"))
    yield from (("pdm", path) for path in _some(data / "pdm" / "venvs", f"*-{by_md5}-*"))
    wanted = CONDA_NAME.search(read_small_text(root / "environment.yml"))
    for line in read_small_text(home / ".conda" / "environments.txt").splitlines() if wanted else ():
        path = Path(line.strip())
        if wanted and path.is_absolute() and path.name == wanted[1]:
            yield "conda", path


def _some(folder: Path, pattern: str) -> Iterator[Path]:
    if folder.is_absolute():
        yield from sorted(islice(folder.glob(pattern), MAX_LISTED_ENVIRONMENTS))[
            :MAX_ENVIRONMENTS_PER_PATTERN
        ]


def required_packages(root: Path) -> frozenset[str]:
    """Packages that a project's papers ask for whatever the machine is, its test groups among them."""
    try:
        table: dict[str, Any] = parse_toml(read_small_text(root / "pyproject.toml"))
    except ValueError:
        table = {}
    lines: list[object] = []
    project = _table(table, "project")
    lines += _list(project.get("dependencies"))
    for groups in (_table(project, "optional-dependencies"), _table(table, "dependency-groups")):
        lines += [
            line for name, group in groups.items() if TEST_GROUPS.fullmatch(name) for line in _list(group)
        ]
    poetry = _table(_table(table, "tool"), "poetry")
    lines += [name for name in _table(poetry, "dependencies") if name != "python"]
    for name, group in _table(poetry, "group").items():
        if TEST_GROUPS.fullmatch(name) and isinstance(group, dict):
            lines += _table(group, "dependencies")
    for paper in PAPERS:
        lines += read_small_text(root / paper).splitlines()
    return frozenset(_names(line for line in lines if isinstance(line, str)))


def _names(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        match = NAME.match(line.strip())
        # Behind a `;` stands on which machines; behind an `@`, or where a slash is, it comes from elsewhere.
        if match and ";" not in line and "/" not in line.partition("#")[0]:
            yield _plain(match[0])


def lacking(required: Iterable[str], site_packages: Iterable[str]) -> tuple[str, ...]:
    """The required packages that no folder of installed ones holds."""
    there: set[str] = set()
    for folder in site_packages:
        try:
            names = [path.name for path in Path(folder).iterdir()]
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info", ".egg-link")):
                there.add(_plain(name.rpartition(".")[0].partition("-")[0]))
    return tuple(sorted(set(required) - there))


def _plain(name: str) -> str:
    """A package's name as it is compared: `A_b.c` and `a-b-c` are one (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _table(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = table.get(name)
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


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
    pairs = (line.partition("=") for line in read_small_text(path).splitlines() if "=" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _pth_entries(packages: Path) -> list[str]:
    # Lines that start with `import` are code; only site itself may run them, behind the wall.
    entries: list[str] = []
    for path in sorted(packages.glob("*.pth")):
        lines = [line for line in read_small_text(path).splitlines() if line.strip()]
        entries += [line for line in lines if not line.startswith(("#", "import ", "import\t"))]
    return [str(packages / entry.strip()) for entry in entries] + _found_by_finders(packages)


def _found_by_finders(packages: Path) -> list[str]:
    """Folders of packages that setuptools' editable installs find by a table, where they name no folder."""
    folders: list[str] = []
    for path in sorted(packages.glob("__editable___*_finder.py")):
        tree = parsed(read_small_text(path))
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
    real = resolve_path(root)
    # isdir, because Path.is_dir raises for a closed folder, and the project may have written these entries.
    folders = (resolve_path(entry) for entry in path if entry and os.path.isdir(entry))  # noqa: PTH112
    inside = (folder for folder in folders if folder.is_relative_to(real))
    named = (folder.relative_to(real).as_posix() for folder in inside if folder.name not in PACKAGE_FOLDERS)
    return tuple(dict.fromkeys(name for name in named if not name.startswith(".venv")))

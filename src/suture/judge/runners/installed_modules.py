"""Listing what a project's programs can import from outside of the project.

A candidate must not add a file with the name of such a module, because it would be imported in its place. The
folders are only listed, on this machine; nothing in them runs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator
from functools import lru_cache
from pathlib import Path

from suture.project.languages import LANGUAGES, Interpreter, Toolchain

PACKAGE_FOLDERS = ("site-packages", "dist-packages")
MODULE_SUFFIXES = (".py", ".pyc", ".so", ".pyd")
PACKAGE_FILES = ("__init__.py", "__init__.pyc")
REQUIREMENT = re.compile(r"^Requires-Dist: *([A-Za-z0-9_-]+)(.*)", re.MULTILINE)
"""Matches a line of a package's metadata: a requirement, and for which version, extra and system it holds."""
DEVELOPMENT_EXTRA = re.compile(r"extra *== *[\"'][^\"']*(?:dev|test|doc|lint|typ|ci|bench|all|style|check)")
"""Matches the common names of extras that a package's developers need. Chosen by judgement."""
MAX_NAMESPACE_DEPTH = 3
"""Nested namespace packages that are listed, as in `google.cloud.storage`. By judgement; not measured."""


def list_importable_modules(
    interpreter: Interpreter | None, search_path: Collection[str] = ()
) -> frozenset[str]:
    """Return the names of the modules and packages that an interpreter can import without the project.

    Modules in packages are left out, except for those in namespace packages, such as `google.protobuf`. Names that
    pytest and its plugins try to import count too, even if nothing has them.

    Args:
        interpreter: The interpreter; `None` for the standard library alone.
        search_path: Further folders, which a run reported. Those outside of the installation are not listed.
    """
    if interpreter is None:
        return sys.stdlib_module_names
    version = ".".join(interpreter.version.split(".")[:2])
    library = [f"{interpreter.base_prefix}/{lib}/python{version}" for lib in ("lib", "lib64")]
    prefixes = tuple(f"{prefix}/" for prefix in (interpreter.prefix, interpreter.base_prefix))
    reported = [
        entry
        for entry in search_path
        if entry.startswith(prefixes) or (entry.startswith("/") and Path(entry).name in PACKAGE_FOLDERS)
    ]
    folders = [*library, *(f"{folder}/lib-dynload" for folder in library), *interpreter.site_packages]
    folders += [*reported, *([interpreter.packages] if interpreter.packages else [])]
    names = frozenset[str]().union(*map(_list_modules, dict.fromkeys(folders)))
    is_own_version = version == "{}.{}".format(*sys.version_info)
    has_library = any(map(_list_modules, library))
    # Modules that are built into the interpreter have no file.
    return names | frozenset(
        sys.stdlib_module_names if is_own_version or not has_library else sys.builtin_module_names
    )


def _list_modules(folder: str) -> frozenset[str]:
    try:
        return _list_modules_at(folder, Path(folder).stat().st_mtime_ns)
    except (OSError, ValueError):  # a reported path may hold a null character
        return frozenset()


@lru_cache(maxsize=64)
def _list_modules_at(folder: str, changed_ns: int) -> frozenset[str]:
    """List a folder. The time of its last change makes a later installation visible."""
    modules = frozenset(_iterate_modules(Path(folder), MAX_NAMESPACE_DEPTH))
    return modules | _list_optional_modules(Path(folder))


def _list_optional_modules(folder: Path) -> frozenset[str]:
    """Return the names of packages that pytest, its plugins and what these need import if they exist.

    `pytest-xdist` imports `setproctitle` if it can. The requirements of packages name these. What only their
    developers need is left out. A module is taken to have its package's name.
    """
    requirements: dict[str, list[tuple[str, str]]] = {}
    waiting = ["pytest"]
    for metadata in folder.glob("*.dist-info/METADATA"):
        package = _normalise(metadata.parent.name.partition("-")[0])
        requirements[package] = REQUIREMENT.findall(_read_text(metadata).partition("\n\n")[0])
        waiting += [package] if "[pytest11]" in _read_text(metadata.with_name("entry_points.txt")) else []
    names: set[str] = set()
    reached: set[str] = set()
    while waiting:
        package = waiting.pop()
        reached.add(package)
        for name, condition in requirements.get(package, ()):
            names |= {_normalise(name)} if not DEVELOPMENT_EXTRA.search(condition) else set()
            is_needed = "extra" not in condition and _normalise(name) not in reached
            waiting += [_normalise(name)] if is_needed else []
    return frozenset(names)


def _normalise(package: str) -> str:
    return package.lower().replace("-", "_")


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _iterate_modules(folder: Path, depth: int) -> Iterator[str]:
    try:
        entries = list(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        name = entry.name.partition(".")[0]  # `fast.cpython-311-x86_64-linux-gnu.so` is the module `fast`
        if not name.isidentifier() or name in ("__pycache__", "__init__", "__main__"):
            continue
        is_package = entry.name == name and any((entry / file).exists() for file in PACKAGE_FILES)
        if is_package or entry.suffix in MODULE_SUFFIXES:
            yield name
        elif entry.name == name and depth:
            modules = [f"{name}.{module}" for module in _iterate_modules(entry, depth - 1)]
            yield from (name, *modules) if modules else ()


def list_node_packages(toolchain: Toolchain | None) -> frozenset[str]:
    """Return the names of the packages in the folder that a toolchain mounts for them."""
    name = LANGUAGES[toolchain.language].packages if toolchain is not None else ""
    if toolchain is None or not name:
        return frozenset()
    sources = [Path(source) for source, target in toolchain.shown.items() if target == f"/{name}"]
    entries = [entry for source in sources if source.is_dir() for entry in source.iterdir()]
    scopes = [entry for entry in entries if entry.name.startswith("@") and entry.is_dir()]
    scoped = [f"{scope.name}/{entry.name}" for scope in scopes for entry in scope.iterdir()]
    return frozenset((*(entry.name for entry in entries), *scoped))

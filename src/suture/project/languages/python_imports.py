"""Which new files Python would import in place of another module.

Python takes the first match on `sys.path`, which has folders of the project before the standard library and
the installed packages. In one folder, a package comes before a module of its name, and a module before a folder
without an `__init__.py`, which is a namespace package. Such a package is used only if nothing else on the whole
path has its name.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from suture.project.languages.language import ModuleLookup
from suture.project.languages.runner_config import MAY_LIST_PLUGINS, find_pytest_search_path

PACKAGE_FILE = "__init__"
COMPILED_SUFFIXES = (".pyc", ".pyo", ".so", ".pyd")
"""Suffixes of files that Python loads without a source."""
METADATA_SUFFIXES = (".dist-info", ".egg-info")
"""Suffixes, in any case, of folders whose entry points pytest loads as plugins."""
START_UP_MODULES = ("sitecustomize", "usercustomize")
"""Modules that Python imports from anywhere on its path when it starts."""
SEARCH_PATH_VARIABLE = re.compile(r"\bPYTHONPATH=(\S+)")


def find_shadowing_modules(paths: Collection[str], lookup: ModuleLookup) -> Iterator[str]:
    """Yield new files that Python would load in place of what it loads without them.

    Compiled files, start-up modules and the metadata of packages count too, because Python or pytest loads them
    although no import names them.
    """
    if not paths:
        return
    own = OwnModules.read(lookup)
    for path in paths:
        if _is_loaded_without_import(path) or path in own.entries:
            yield path
        elif path.endswith(".py"):
            is_shadowing = own.hides_neighbour(path) or any(own.takes_name(path, e) for e in own.entries)
            if is_shadowing:
                yield path


def find_search_path(lookup: ModuleLookup) -> frozenset[str]:
    """Return the folders of the project from which top-level modules are imported; the root is empty.

    What the run of the tests reported is completed by what configuration and command say. Without a report,
    pytest adds the folder of each test, or the first one around its packages.
    """
    folders = {".", *lookup.source_roots, *find_pytest_search_path(lookup.files)}
    for word in lookup.command:
        folders.update(entry for match in SEARCH_PATH_VARIABLE.findall(word) for entry in match.split(":"))
        folders |= {posixpath.dirname(word)} if word.endswith(".py") and word in lookup.files else set()
    folders.update(lookup.search_path or _find_test_folders(lookup))
    normalised = (posixpath.normpath(folder) if folder else "." for folder in folders)
    return frozenset(
        "" if folder == "." else folder for folder in normalised if not folder.startswith(("/", ".."))
    )


def _find_test_folders(lookup: ModuleLookup) -> Iterator[str]:
    tests = {*lookup.test_files, *filter(MAY_LIST_PLUGINS.fullmatch, lookup.files)}
    for path in tests:
        folder = posixpath.dirname(path)
        while folder and posixpath.join(folder, f"{PACKAGE_FILE}.py") in lookup.files:
            folder = posixpath.dirname(folder)
        yield folder


def _is_loaded_without_import(path: str) -> bool:
    file = PurePosixPath(path)
    return (
        file.suffix in (*COMPILED_SUFFIXES, ".egg-link")
        or "__pycache__" in file.parts
        or any(part.partition(".")[0] in START_UP_MODULES for part in file.parts)
        or any(part.lower().endswith(METADATA_SUFFIXES) for part in file.parts)
    )


@dataclass(frozen=True, kw_only=True)
class OwnModules:
    """The modules of a project's own files.

    Attributes:
        entries: The folders from which top-level modules are imported; the root is empty.
        modules: Modules and packages by their paths without a suffix.
        packages: Folders that have an `__init__`.
        folders: Folders that hold modules, in them or below.
    """

    lookup: ModuleLookup
    entries: frozenset[str]
    modules: frozenset[str]
    packages: frozenset[str]
    folders: frozenset[str]

    @classmethod
    def read(cls, lookup: ModuleLookup) -> OwnModules:
        """Return the modules of a project."""
        # `fast.cpython-311-x86_64-linux-gnu.so` is the module `fast`.
        stems = [
            posixpath.join(posixpath.dirname(path), posixpath.basename(path).partition(".")[0])
            for path in lookup.files
            if path.endswith((".py", *COMPILED_SUFFIXES))
        ]
        packages = {posixpath.dirname(stem) for stem in stems if posixpath.basename(stem) == PACKAGE_FILE}
        folders = {str(folder) for stem in stems for folder in PurePosixPath(stem).parents}
        return cls(
            lookup=lookup,
            entries=find_search_path(lookup),
            modules=frozenset({*stems, *packages}),
            packages=frozenset(packages),
            folders=frozenset(folders),
        )

    def hides_neighbour(self, path: str) -> bool:
        """Whether a new module would be imported in place of its neighbour with the same name."""
        stem = path.removesuffix(".py")
        if posixpath.basename(stem) == PACKAGE_FILE:
            folder = posixpath.dirname(stem)
            return folder in self.modules and folder not in self.packages
        return self._is_used_namespace(stem)

    def takes_name(self, path: str, entry: str) -> bool:
        """Whether a new module would take the name of another one if it is imported from a folder.

        Args:
            entry: A folder on the search path.
        """
        claimed = _split_name(path, entry)
        place = _join(entry, claimed)
        if not claimed or place in self.modules or self._is_in_package(entry, claimed):
            return False  # what is developed in the project may be extended
        name = ".".join(claimed)
        if name in self.lookup.modules or self._is_loaded_elsewhere(name, place):
            return True
        others = [
            _join(other, claimed)
            for other in self.entries
            if other != entry and not self._is_in_package(other, claimed)
        ]
        return any(other in self.modules or self._is_used_namespace(other) for other in others)

    def _is_in_package(self, entry: str, claimed: Sequence[str]) -> bool:
        return any(_join(entry, claimed[:depth]) in self.packages for depth in range(1, len(claimed)))

    def _is_loaded_elsewhere(self, name: str, place: str) -> bool:
        if name.startswith("__"):  # such as `__main__`, which is the program that runs
            return False
        return any(loaded == name and found != place for loaded, found in self.lookup.loaded)

    def _is_used_namespace(self, folder: str) -> bool:
        """Whether a folder is imported as a namespace package; without a report, each may be."""
        if folder not in self.folders or folder in self.packages:
            return False
        return not self.lookup.loaded or any(place == folder for _, place in self.lookup.loaded)


def _join(entry: str, parts: Sequence[str]) -> str:
    return "/".join(filter(None, (entry, *parts)))


def _split_name(path: str, entry: str) -> tuple[str, ...]:
    """Return the parts of a module's full name if it is imported from a folder; empty if it cannot be."""
    prefix = f"{entry}/" if entry else ""
    if not path.startswith(prefix):
        return ()
    parts = path.removeprefix(prefix).removesuffix(".py").split("/")
    return tuple(parts[:-1] if parts[-1] == PACKAGE_FILE else parts)

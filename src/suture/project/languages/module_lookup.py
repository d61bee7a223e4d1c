"""What decides which file an import loads, as data: the rules of each language compute from it what would change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from suture.project.languages.reports import Runner


@dataclass(frozen=True, kw_only=True)
class ModuleLookup:
    """What imports find in a project before any candidate.

    Attributes:
        files: The project's own files, path -> content.
        command: The test command as an argument vector.
        runner: The runner that reports its tests; `None` for pytest and for a command without a report.
        source_roots: Folders of the project that its environment has on `sys.path`.
        search_path: Folders of the project that were on `sys.path` while its tests ran; empty if unknown.
        loaded: (module, place) of what Python had loaded by then: a file of the project, the folder of a
            namespace package, or an empty string for what is outside of the project. Empty if unknown.
        modules: Dotted names of the modules that Python can import from outside of the project.
        packages: Names of the installed packages of other languages, such as those in `node_modules`.
    """

    files: Mapping[str, bytes]
    command: tuple[str, ...] = ()
    test_files: Collection[str] = ()
    runner: Runner | None = None
    source_roots: Collection[str] = ()
    search_path: Collection[str] = ()
    loaded: frozenset[tuple[str, str]] = field(default_factory=frozenset)
    modules: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()


class FindShadowingFiles(Protocol):
    """Yields new files that an import would load in place of what it loads without them."""

    def __call__(self, paths: Collection[str], lookup: ModuleLookup) -> Iterable[str]:
        """Yield some of the paths, which are normalised and none of which is a file of the project."""
        ...

"""What the unchanged project compiles to: kept from its first run, and laid beside the sources in later ones.

Each run begins with an empty folder, and to compile a project takes longer than many suites do. The user's
own code has run where this was made, and may have left anything in its place: what a candidate changes is
compiled anew, and so are the tests, on which a verdict rests.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Container, Mapping
from dataclasses import dataclass, field

COMPILED = "compiled"
"""The file in our own folder that brings it back."""
CACHE = "__pycache__"


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """Compiled files of a project.

    Attributes:
        by_source: Source -> path of what it was compiled to -> content.
        sources: Sources as they were then.
    """

    by_source: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    sources: Mapping[str, bytes] = field(default_factory=dict)

    def beside(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """Those of sources that are as they were; nothing of these files is replaced."""
        same = [path for path in self.by_source if files.get(path) == self.sources[path]]
        laid = {path: content for source in same for path, content in self.by_source[source].items()}
        return {path: content for path, content in laid.items() if path not in files}

    def dated(self, files: Mapping[str, bytes]) -> list[str]:
        """The sources that must be as old as they were for that to be believed."""
        return [path for path in self.by_source if files.get(path) == self.sources[path]]

    def without(self, paths: Container[str]) -> Compiled:
        """Without what some sources were compiled to."""
        kept = {path: made for path, made in self.by_source.items() if path not in paths}
        return Compiled(by_source=kept, sources={path: self.sources[path] for path in kept})


def sources_of(files: Mapping[str, bytes]) -> list[str]:
    """The Python files of a project."""
    return [path for path in files if path.endswith(".py")]


def compiled_from(content: bytes, files: Mapping[str, bytes]) -> Compiled:
    """Read what a run on the project's own files has brought back; nothing where it is of another shape.

    Args:
        content: A line of JSON, `[source, name, size]` for each, and then their contents.
        files: The project's files.
    """
    head, _, rest = content.partition(b"\n")
    try:
        index = json.loads(head)
    except (ValueError, RecursionError):
        return Compiled()
    found: dict[str, dict[str, bytes]] = {}
    at = 0
    for entry in index if isinstance(index, list) else ():
        if not (isinstance(entry, list) and tuple(map(type, entry)) == (str, str, int)):
            return Compiled()
        source, name, size = entry
        stem = posixpath.basename(source).removesuffix("py")
        proper = name.startswith(stem) and name.endswith(".pyc") and "/" not in name
        if source not in files or not source.endswith(".py") or not proper or not 0 <= size <= len(rest) - at:
            return Compiled()
        place = posixpath.join(posixpath.dirname(source), CACHE, name)
        found.setdefault(source, {})[place] = rest[at : at + size]
        at += size
    return Compiled(by_source=found, sources={path: files[path] for path in found})

"""Modules of the project's own that are not there, because a build writes or compiles them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import basename, splitext

from suture.workspace import is_protected, text_of

COMPILED_FROM = (".pyx", ".c", ".cc", ".cpp", ".rs", ".proto")
PAPERS = ("pyproject.toml", "setup.py", "setup.cfg", ".gitignore")
INSTALL = "build the project as its papers say, such as `pip install -e .`"


def module_not_built(
    dotted: str, files: Mapping[str, bytes], left_out: Mapping[str, str]
) -> tuple[str, str] | None:
    """Why a module of the project's own is missing through no fault of the code, and what to do about it.

    Args:
        dotted: Its name, as an import tells it.
        files: The project, as it was copied.
        left_out: Files of modules that were not copied -> why.

    Returns:
        `None` where the module is none that a build would write.
    """
    place = dotted.replace(".", "/")
    here = next((path for path in sorted(left_out) if _is_module(path, place)), None)
    if here is not None:
        why = f"{here!r} is not copied into the sandbox: {left_out[here]}"
        return why, f"if it may be read there, add the line `!/{here}` to .gitignore"
    parent = f"{place.rpartition('/')[0]}/__init__.py"
    package = next((path for path in sorted(files) if path == parent or path.endswith(f"/{parent}")), None)
    if package is None:
        return None
    missing = package.removesuffix("__init__.py") + basename(place) + ".py"
    source = next((path for path in sorted(files) if _is_source(path, basename(place))), None)
    if source is not None:
        return f"{dotted!r} is made of {source!r} when the project is built, and is not there", INSTALL
    paper = next(
        (path for path in PAPERS if path in files and _names_as_made(path, files[path], missing)), None
    )
    if paper is not None:
        return f"{dotted!r} is written when the project is built, as {paper} says, and is not there", INSTALL
    return None


def _is_module(path: str, place: str) -> bool:
    stem = path.removesuffix(".py") if path.endswith(".py") else splitext(path)[0].partition(".cpython-")[0]
    stem = stem.removesuffix("/__init__").removesuffix(".abi3")
    return stem == place or stem.endswith(f"/{place}")


def _is_source(path: str, name: str) -> bool:
    stem, ending = splitext(basename(path))
    proto = ending == ".proto" and name in (f"{stem}_pb2", f"{stem}_pb2_grpc")
    return proto or (ending in COMPILED_FROM and stem in (name, name.lstrip("_")))


def _names_as_made(paper: str, content: bytes, missing: str) -> bool:
    """Whether a paper of the project names a file as one that is made."""
    if paper == ".gitignore":
        return is_protected(missing, text_of(content).splitlines())
    return re.search(rf"(?<![\w./-]){re.escape(missing)}\b", text_of(content)) is not None

"""Which new files Node, Jest or Vitest would load in place of another module.

A module that is named without its extension is the first file that exists: `./cart` is `cart.js` before
`cart/index.js`. The order of the extensions differs between the runners.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator

from suture.project.languages.language import ModuleLookup
from suture.project.languages.runner_config import find_node_module_folders

SCRIPT_EXTENSIONS = (".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx")
DATA_EXTENSIONS = (".json", ".node")
MODULE_EXTENSIONS = (*SCRIPT_EXTENSIONS, *DATA_EXTENSIONS)
NODE_ORDER = (".js", ".json", ".node")
"""The extensions that node itself tries, in their order."""
TYPED_EXTENSIONS = (".ts", ".cts", ".mts", ".tsx", ".jsx")
"""Extensions of files that a compiler or a loader translates, which may try them in any order."""
OWN_ORDER = re.compile(rb"\bmoduleFileExtensions\b|\bextensions[\"']?\s*:")
"""Matches a setting that chooses another order of extensions."""


def find_shadowing_node_files(paths: Collection[str], lookup: ModuleLookup) -> Iterator[str]:
    """Yield new files that would be loaded in place of another module of the project, or of a package."""
    scripts = [path for path in paths if path.endswith(MODULE_EXTENSIONS) and ".d." not in path]
    if not scripts:
        return
    order = _find_order(lookup)
    folders = {
        folder for folder in find_node_module_folders(lookup.files) if not folder.startswith(("/", ".."))
    }
    for path in scripts:
        is_package = any(_takes_package_name(path, folder, lookup) for folder in folders)
        if is_package or _precedes_neighbour(path, order, lookup):
            yield path


def _find_order(lookup: ModuleLookup) -> tuple[str, ...]:
    """Return the extensions that are tried, in their order; empty if it is unknown."""
    has_own_order = any(
        OWN_ORDER.search(content)
        for path, content in lookup.files.items()
        if ".config." in path or posixpath.basename(path) == "package.json"
    )
    if has_own_order:
        return ()
    if lookup.runner is not None and lookup.runner.module_extensions:
        return lookup.runner.module_extensions
    return () if any(path.endswith(TYPED_EXTENSIONS) for path in lookup.files) else NODE_ORDER


def _precedes_neighbour(path: str, order: tuple[str, ...], lookup: ModuleLookup) -> bool:
    """Whether a new file would be loaded in place of a file or folder whose path differs in the extension only."""
    stem, extension = posixpath.splitext(path)
    if order and extension not in order:
        return False
    later = order[order.index(extension) + 1 :] if order else MODULE_EXTENSIONS
    hidden = [end for end in later if end != extension and f"{stem}{end}" in lookup.files]
    indexes = (f"{stem}/package.json", *(f"{stem}/index{end}" for end in MODULE_EXTENSIONS))
    hidden += [index for index in indexes if index in lookup.files]
    if not hidden:
        return False
    # Data is usually imported by its full name, which no other file can take.
    has_data = extension in DATA_EXTENSIONS or set(hidden) <= set(DATA_EXTENSIONS)
    return not has_data or _is_imported_without_extension(posixpath.basename(stem), lookup)


def _is_imported_without_extension(name: str, lookup: ModuleLookup) -> bool:
    specifier = re.compile(rb"[\"'`](?:[^\"'`\n]*/)?%b[\"'`]" % re.escape(name).encode())
    scripts = (content for path, content in lookup.files.items() if path.endswith(SCRIPT_EXTENSIONS))
    return any(specifier.search(content) for content in scripts)


def _takes_package_name(path: str, folder: str, lookup: ModuleLookup) -> bool:
    """Whether a new file has the name of a package and lies where the configuration looks for packages.

    In the sandbox the installed packages come after every folder of the project.
    """
    prefix = "" if folder == "." else f"{folder}/"
    if not path.startswith(prefix) or folder.endswith("node_modules"):
        return False
    parts = path.removeprefix(prefix).split("/")
    name = "/".join(parts[: 2 if parts[0].startswith("@") else 1])
    is_new = not any(file.startswith(f"{prefix}{name}/") for file in lookup.files)
    return is_new and (name in lookup.packages or posixpath.splitext(name)[0] in lookup.packages)

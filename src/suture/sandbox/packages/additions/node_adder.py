"""Add packages to a Node project: `package.json`, and `package-lock.json` as npm itself writes it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from suture.core.safe_files import read_regular_file, write_file_atomically
from suture.project.languages import Interpreter
from suture.sandbox.packages.additions.adder import (
    AddedSet,
    Files,
    LockUpdates,
    PackageAdder,
    WorkFolders,
    detect_newline,
    read_file_text,
)
from suture.sandbox.packages.additions.lock_update import NODE_LOCK_TOOLS, update_locks
from suture.sandbox.packages.installer import MAX_QUOTED_CHARS, PackagesRefused, WorkFolder
from suture.sandbox.packages.npm_installer import (
    TABLES,
    Npm,
    find_npm_access,
    installed_names,
    parse_lock,
    require_from_registry,
    run_npm,
)
from suture.sandbox.packages.package_sets import NODE_MODULES
from suture.sandbox.tuning import MAX_LOCK_BYTES

INDENT = re.compile(r'^(?P<indent>[ \t]+)"', re.MULTILINE)
"""Matches the first indented name of a JSON file."""


MANIFEST, LOCK = "package.json", "package-lock.json"
ALL_TABLES = (*TABLES, "optionalDependencies", "peerDependencies")
"""The tables in which a project may already request a package."""
INSTALLED_RECORD = ".package-lock.json"
"""npm's own record, in the format of a lock, of what it has installed into `node_modules`."""


class NodeAdder(PackageAdder):
    """Installs all packages again: existing ones in the versions of the lock, or of `node_modules`."""

    folder = "node_modules"
    updated_locks = NODE_LOCK_TOOLS.keys()
    other_locks = ("bun.lock", "bun.lockb")

    def manifest_path(self, base: Files) -> str:
        """See `PackageAdder`."""
        return MANIFEST

    def find_requested(self, base: Files, written: Mapping[str, str]) -> tuple[str, ...]:
        """See `PackageAdder`: each requirement is the table, a blank and `name@range`."""
        own_package = _parse_object(read_file_text(base, MANIFEST) or "{}")
        known_names = {name for table in ALL_TABLES for name in _get_table(own_package, table)}
        package = _parse_object(written.get(MANIFEST, "{}"))
        new_tables: dict[str, dict[str, Any]] = {}
        for table in TABLES:  # a package in several tables counts for the first
            requested = _get_table(package, table)
            new_tables[table] = {name: requested[name] for name in requested if name not in known_names}
            known_names |= new_tables[table].keys()
        return Npm().parse_manifest(json.dumps(new_tables))

    def write_manifest(self, base: Files, requirements: Sequence[str]) -> str:
        """See `PackageAdder`."""
        text = read_file_text(base, MANIFEST)
        package = _parse_object(text or "{}")
        is_shrinkwrapped = "npm-shrinkwrap.json" in base  # a lock that takes precedence over `LOCK`
        if MANIFEST not in base or "workspaces" in package or is_shrinkwrapped or _has_npm_6_lock(base):
            raise PackagesRefused(
                f"packages can only be added to a project with a {MANIFEST}, without workspaces, and with no "
                f"{LOCK} or one of npm 7 or newer"
            )
        for requirement in requirements:
            table, _, requested = requirement.partition(" ")
            name, _, versions = requested.rpartition("@")
            existing = _get_table(package, table)
            packages = {**existing, name: versions}
            is_sorted = list(existing) == sorted(existing)
            package[table] = dict(sorted(packages.items())) if is_sorted else packages
        return _format_like(text, package)

    async def fetch(
        self, base: Files, requirements: Sequence[str], work_folders: WorkFolders, interpreter: Interpreter
    ) -> AddedSet:
        """See `PackageAdder`."""
        resolve_folder, install_folder = work_folders
        manifest, old_lock = self.write_manifest(base, requirements), _find_lock(base, interpreter)
        old_entries = parse_lock(old_lock) if old_lock else {}
        # npm would otherwise rewrite every entry of a lock that says where its packages come from.
        with_addresses = any("resolved" in entry for entry in old_entries.values())
        _write_files(resolve_folder, manifest, old_lock)
        await run_npm(["install", "--package-lock-only"], resolve_folder, with_addresses=with_addresses)
        lock = resolve_folder.read_text(LOCK)
        entries = parse_lock(lock)
        new_entries = {path: entry for path, entry in entries.items() if old_entries.get(path) != entry}
        require_from_registry(
            path for path, entry in new_entries.items() if not entry.get("integrity") or entry.get("link")
        )
        _write_files(install_folder, manifest, lock)
        await run_npm(["ci"], install_folder, with_addresses=with_addresses)
        requested = {requirement.partition(" ")[2].rpartition("@")[0] for requirement in requirements}
        # Not only `new_entries`: a requested package may be there already, because another one requires it.
        lock_parts = {
            f"{name}@{entry.get('version')}": (
                str(entry.get("integrity")),
                f"{name}@npm:{entry.get('version')}",
            )
            for path, entry in entries.items()
            if (name := path.removeprefix("node_modules/")) in requested
        }
        return AddedSet(
            files={MANIFEST: manifest, **({LOCK: lock} if LOCK in base else {})},
            names=installed_names(new_entries, install_folder.folder),
            lock_parts=lock_parts,
        )

    async def update_locks(self, base: Files, added: AddedSet, work_folder: WorkFolder) -> LockUpdates:
        """See `PackageAdder`."""
        return await update_locks(
            NODE_LOCK_TOOLS, base, MANIFEST, added, work_folder, partial(find_npm_access, ("npm",))
        )


def _parse_object(text: str) -> dict[str, Any]:
    try:
        package = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise PackagesRefused(f"{MANIFEST} is not valid JSON: {fault}"[:MAX_QUOTED_CHARS]) from fault
    if not isinstance(package, dict):
        raise PackagesRefused(f"{MANIFEST} is not an object")
    return package


def _format_like(text: str, package: Mapping[str, Any]) -> str:
    """Return an object as JSON with the indentation and the line ends of a file, and each member on its own line.

    npm writes `package.json` in the same way.
    """
    match = INDENT.search(text)
    try:
        written = json.dumps(
            package,
            indent=match["indent"] if match else "  ",
            ensure_ascii=r"\ud" in text.lower(),  # half of a character can only be written as its escape
        )
    except RecursionError as fault:
        raise PackagesRefused(f"{MANIFEST} is nested too deeply") from fault
    return (written + "\n" * text.endswith("\n")).replace("\n", detect_newline(text))


def _get_table(package: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = package.get(name, {})
    if not isinstance(table, dict):
        raise PackagesRefused(f"{MANIFEST} has no table {name!r}")
    return table


def _has_npm_6_lock(base: Files) -> bool:
    """Return whether the project's lock is in the format of npm 6, which has no `packages`."""
    lock = read_file_text(base, LOCK)
    return bool(lock) and "packages" not in _parse_object(lock)


def _find_lock(base: Files, interpreter: Interpreter) -> str:
    """Return the project's lock, or the content of its `node_modules` as one; empty without either."""
    if LOCK in base:
        return read_file_text(base, LOCK)
    shown = interpreter.toolchain.shown if interpreter.toolchain else {}
    folder = next((source for source, target in shown.items() if target == NODE_MODULES), None)
    content = read_regular_file(Path(folder) / INSTALLED_RECORD, MAX_LOCK_BYTES) if folder else None
    if content is None or len(content) > MAX_LOCK_BYTES:
        return ""
    package = _parse_object(read_file_text(base, MANIFEST))
    root = {key: package[key] for key in ("name", "version", *ALL_TABLES) if key in package}
    packages = {"": root, **parse_lock(content.decode("utf-8", "replace"))}
    return json.dumps({"lockfileVersion": 3, "requires": True, "packages": packages})


def _write_files(work_folder: WorkFolder, manifest: str, lock: str) -> None:
    """Write the project's own manifest, whose scripts do not run, and its lock."""
    write_file_atomically(work_folder.folder / MANIFEST, manifest.encode())
    if lock:
        write_file_atomically(work_folder.folder / LOCK, lock.encode())

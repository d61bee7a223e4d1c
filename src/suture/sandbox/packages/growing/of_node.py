"""Packages of a Node project: `package.json`, and `package-lock.json` as npm itself writes it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from suture.core.safe_files import read_plain, write_atomically
from suture.project.languages import Interpreter
from suture.sandbox.packages.from_npm import TABLES, Npm, packages_in, run_npm
from suture.sandbox.packages.growing.grower import Files, Grower, Grown, text_in
from suture.sandbox.packages.growing.json_text import with_member
from suture.sandbox.packages.installer import LOCK_BYTES, PackagesRefused, Place

MANIFEST, LOCK = "package.json", "package-lock.json"
EVERY = (*TABLES, "optionalDependencies", "peerDependencies")
OTHERS = ("yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb")
HIDDEN = ".package-lock.json"
"""What npm has laid into `node_modules`, as a lock says it."""
NODE_MODULES = "/node_modules"


class NodeGrower(Grower):
    """All packages are laid anew: those that are there in the versions of the lock, or of `node_modules`."""

    folder = "node_modules"

    def manifest(self, base: Files) -> str:
        """See `Grower`."""
        return MANIFEST

    def asked(self, base: Files, written: Mapping[str, str]) -> tuple[str, ...]:
        """See `Grower`: each is the table, a blank and `name@range`. Of the rest nothing is read."""
        own = _object(text_in(base, MANIFEST) or "{}")
        known = {name for table in EVERY for name in _table(own, table)}
        package = _object(written.get(MANIFEST, "{}"))
        new = {
            table: {name: said for name, said in _table(package, table).items() if name not in known}
            for table in TABLES
        }
        new[TABLES[1]] = {name: said for name, said in new[TABLES[1]].items() if name not in new[TABLES[0]]}
        return Npm().wanted(json.dumps(new))

    def written_down(self, base: Files, new: Sequence[str]) -> str:
        """See `Grower`."""
        text = text_in(base, MANIFEST)
        own = _object(text or "{}")
        shrunk = "npm-shrinkwrap.json" in base
        if MANIFEST not in base or "workspaces" in own or shrunk or _is_of_npm_6(text_in(base, LOCK)):
            raise PackagesRefused(
                f"packages are added where {MANIFEST} says which, without workspaces, and with a {LOCK} of "
                "npm 7 or newer, if any"
            )
        for one in new:
            table, _, asked = one.partition(" ")
            name, _, versions = asked.rpartition("@")
            text = with_member(text, table, name, versions)
            own.setdefault(table, {})[name] = versions
        if _object(text) != own:
            raise PackagesRefused(f"{MANIFEST} is not written as could be added to")
        return text

    async def fetch(
        self, base: Files, new: Sequence[str], places: tuple[Place, Place], interpreter: Interpreter
    ) -> Grown:
        """See `Grower`."""
        first, second = places
        manifest, before = self.written_down(base, new), _lock_of(base, interpreter)
        with_addresses = any("resolved" in one for one in packages_in(before).values()) if before else False
        _lay(first, manifest, before)
        await run_npm(["install", "--package-lock-only"], first, with_addresses=with_addresses)
        lock = first.text_of(LOCK)
        old = packages_in(before) if before else {}
        fresh = {path: one for path, one in packages_in(lock).items() if old.get(path) != one}
        odd = [path for path, one in fresh.items() if not one.get("integrity") or one.get("link")]
        if odd:
            raise PackagesRefused(f"{', '.join(odd[:3])} comes from past the index, or has no hash")
        _lay(second, manifest, lock)
        await run_npm(["ci"], second, with_addresses=with_addresses)
        laid = {path: one for path, one in fresh.items() if (second.folder / path).is_dir()}
        names = (f"{path.rpartition('node_modules/')[2]}@{one.get('version')}" for path, one in laid.items())
        return Grown(files={MANIFEST: manifest, **({LOCK: lock} if LOCK in base else {})}, names=tuple(names))

    def untouched(self, base: Files) -> tuple[str, ...]:
        """See `Grower`."""
        return tuple(name for name in OTHERS if name in base)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise PackagesRefused(f"{MANIFEST} is no JSON: {fault}"[:200]) from fault
    if not isinstance(found, dict):
        raise PackagesRefused(f"{MANIFEST} is no object")
    return found


def _table(package: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = package.get(name, {})
    if not isinstance(found, dict):
        raise PackagesRefused(f"{MANIFEST} has no table {name!r}")
    return found


def _is_of_npm_6(lock: str) -> bool:
    return bool(lock) and "packages" not in _object(lock)


def _lock_of(base: Files, interpreter: Interpreter) -> str:
    """The project's lock, else what its `node_modules` hold, as one; empty without either."""
    if LOCK in base:
        return text_in(base, LOCK)
    shown = interpreter.toolchain.shown if interpreter.toolchain else {}
    folder = next((here for here, there in shown.items() if there == NODE_MODULES), None)
    content = read_plain(Path(folder) / HIDDEN, LOCK_BYTES) if folder else None
    if content is None or len(content) > LOCK_BYTES:
        return ""
    own = _object(text_in(base, MANIFEST))
    root = {key: own[key] for key in ("name", "version", *EVERY) if key in own}
    packages = {"": root, **packages_in(content.decode("utf-8", "replace"))}
    return json.dumps({"lockfileVersion": 3, "requires": True, "packages": packages})


def _lay(place: Place, manifest: str, lock: str) -> None:
    """The project's own manifest, whose scripts do not run, and its lock."""
    write_atomically(place.folder / MANIFEST, manifest.encode())
    if lock:
        write_atomically(place.folder / LOCK, lock.encode())

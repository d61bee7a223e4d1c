"""A member more in a JSON text, of which the rest stays as it is written."""
# FIXME doc of sandbox/packages/adding/node_adder: """Packages of a Node project: `package.json`, and `package-lock.json` as npm itself writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suture.core.safe_files import read_regular_file, write_file_atomically
from suture.project.languages import Interpreter
from suture.sandbox.packages.additions.adder import AddedSet, Files, PackageAdder, text_in
from suture.sandbox.packages.installer import PackagesRefused, Place
from suture.sandbox.packages.npm_installer import TABLES, Npm, packages_in, run_npm
from suture.sandbox.tuning import MAX_LOCK_BYTES

BLANK = " \t\r\n"


@dataclass(frozen=True, kw_only=True)
class Member:
    """A member of an object: its name, and where name and value begin and the value ends."""

    name: str
    start: int
    value: int
    end: int


def with_member(text: str, table: str, name: str, value: str) -> str:
    """A text with `name: value` in one of its top object's tables, which is made where it is not there.

    Where the names of the table are in order, so they are afterwards.

    Args:
        text: A JSON object.
        table: The name of an object in it.
        name: Of the new member.
        value: Of the new member.

    Raises:
        ValueError: It is no such object.
    """
    top = list(_members(text, _skip(text, 0)))
    step = _blank_before(text, top[0].start) if top else "\n  "
    entry = f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
    found = next((one for one in reversed(top) if one.name == table), None)
    deeper = step + step.rpartition("\n")[2] if "\n" in step else step
    if found is None:
        whole = f"{json.dumps(table)}: {{{deeper}{entry}{step}}}"
        return _after(text, top, whole, step)
    members = list(_members(text, found.value))
    if not members:
        return f"{text[: found.value]}{{{deeper}{entry}{step}}}{text[found.end :]}"
    names = [one.name for one in members]
    later = next((one for one in members if one.name > name), None) if names == sorted(names) else None
    if later is None:
        return _after(text, members, entry, "")
    return f"{text[: later.start]}{entry},{_blank_before(text, later.start)}{text[later.start :]}"


def _after(text: str, members: list[Member], entry: str, step: str) -> str:
    if not members:
        start = _skip(text, 0) + 1
        return f"{text[:start]}{step}{entry}{step[: step.find(chr(10)) + 1]}{text[start:].lstrip(BLANK)}"
    last = members[-1]
    return f"{text[: last.end]},{_blank_before(text, last.start)}{entry}{text[last.end :]}"


def _blank_before(text: str, at: int) -> str:
    start = at
    while text[start - 1] in BLANK:
        start -= 1
    return text[start:at]


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in BLANK:
        at += 1
    return at


def _members(text: str, at: int) -> Iterator[Member]:
    """The members of the object that begins there."""
    decoder = json.JSONDecoder()
    if text[at : at + 1] != "{":
        raise ValueError("there is no object")
    at = _skip(text, at + 1)
    while text[at : at + 1] == '"':
        start = at
        name, at = decoder.raw_decode(text, at)
        value = _skip(text, _skip(text, at) + 1)
        _, end = decoder.raw_decode(text, value)
        yield Member(name=name, start=start, value=value, end=end)
        at = _skip(text, end)
        if text[at : at + 1] != ",":
            return
        at = _skip(text, at + 1)


MANIFEST, LOCK = "package.json", "package-lock.json"
EVERY = (*TABLES, "optionalDependencies", "peerDependencies")
OTHERS = ("yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb")
HIDDEN = ".package-lock.json"
"""What npm has laid into `node_modules`, as a lock says it."""
NODE_MODULES = "/node_modules"


class NodeAdder(PackageAdder):
    """All packages are laid anew: those that are there in the versions of the lock, or of `node_modules`."""

    folder = "node_modules"

    def manifest(self, base: Files) -> str:
        """See `PackageAdder`."""
        return MANIFEST

    def asked(self, base: Files, written: Mapping[str, str]) -> tuple[str, ...]:
        """See `PackageAdder`: each is the table, a blank and `name@range`. Of the rest nothing is read."""
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
        """See `PackageAdder`."""
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
    ) -> AddedSet:
        """See `PackageAdder`."""
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
        return AddedSet(
            files={MANIFEST: manifest, **({LOCK: lock} if LOCK in base else {})}, names=tuple(names)
        )

    def untouched(self, base: Files) -> tuple[str, ...]:
        """See `PackageAdder`."""
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
    content = read_regular_file(Path(folder) / HIDDEN, MAX_LOCK_BYTES) if folder else None
    if content is None or len(content) > MAX_LOCK_BYTES:
        return ""
    own = _object(text_in(base, MANIFEST))
    root = {key: own[key] for key in ("name", "version", *EVERY) if key in own}
    packages = {"": root, **packages_in(content.decode("utf-8", "replace"))}
    return json.dumps({"lockfileVersion": 3, "requires": True, "packages": packages})


def _lay(place: Place, manifest: str, lock: str) -> None:
    """The project's own manifest, whose scripts do not run, and its lock."""
    write_file_atomically(place.folder / MANIFEST, manifest.encode())
    if lock:
        write_file_atomically(place.folder / LOCK, lock.encode())

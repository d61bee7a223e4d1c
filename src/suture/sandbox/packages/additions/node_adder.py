"""Add packages to a Node project: `package.json`, and `package-lock.json` as npm itself writes it.

A new member is inserted into the JSON text so that the rest of the text stays as it is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suture.core.safe_files import read_regular_file, write_file_atomically
from suture.project.languages import Interpreter
from suture.sandbox.packages.additions.adder import AddedSet, Files, PackageAdder, read_file_text
from suture.sandbox.packages.installer import PackagesRefused, WorkFolder
from suture.sandbox.packages.npm_installer import TABLES, Npm, parse_lock, run_npm
from suture.sandbox.tuning import MAX_LOCK_BYTES

BLANK = " \t\r\n"


@dataclass(frozen=True, kw_only=True)
class Member:
    """A member of a JSON object: its name, and the offsets of its name, its value and the value's end."""

    name: str
    start: int
    value: int
    end: int


def insert_member(text: str, table: str, name: str, value: str) -> str:
    """Return a text with `name: value` in one of its top object's tables, which is created if it is missing.

    If the names of the table are sorted, they still are afterwards.

    Args:
        text: A JSON object.
        table: The name of an object in it.
        name: The name of the new member.
        value: The value of the new member.

    Raises:
        ValueError: The text is not such an object.
    """
    top = list(_parse_members(text, _skip_whitespace(text, 0)))
    indent = _whitespace_before(text, top[0].start) if top else "\n  "
    entry = f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
    found = next((one for one in reversed(top) if one.name == table), None)
    inner_indent = indent + indent.rpartition("\n")[2] if "\n" in indent else indent
    if found is None:
        whole = f"{json.dumps(table)}: {{{inner_indent}{entry}{indent}}}"
        return _insert_after(text, top, whole, indent)
    members = list(_parse_members(text, found.value))
    if not members:
        return f"{text[: found.value]}{{{inner_indent}{entry}{indent}}}{text[found.end :]}"
    names = [one.name for one in members]
    next_member = next((one for one in members if one.name > name), None) if names == sorted(names) else None
    if next_member is None:
        return _insert_after(text, members, entry, "")
    at = next_member.start
    return f"{text[:at]}{entry},{_whitespace_before(text, at)}{text[at:]}"


def _insert_after(text: str, members: list[Member], entry: str, indent: str) -> str:
    if not members:
        start = _skip_whitespace(text, 0) + 1
        return (
            f"{text[:start]}{indent}{entry}{indent[: indent.find(chr(10)) + 1]}{text[start:].lstrip(BLANK)}"
        )
    last = members[-1]
    return f"{text[: last.end]},{_whitespace_before(text, last.start)}{entry}{text[last.end :]}"


def _whitespace_before(text: str, at: int) -> str:
    start = at
    while text[start - 1] in BLANK:
        start -= 1
    return text[start:at]


def _skip_whitespace(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in BLANK:
        at += 1
    return at


def _parse_members(text: str, at: int) -> Iterator[Member]:
    """Yield the members of the object that begins at `at`."""
    decoder = json.JSONDecoder()
    if text[at : at + 1] != "{":
        raise ValueError("there is no object")
    at = _skip_whitespace(text, at + 1)
    while text[at : at + 1] == '"':
        start = at
        name, at = decoder.raw_decode(text, at)
        value = _skip_whitespace(text, _skip_whitespace(text, at) + 1)
        _, end = decoder.raw_decode(text, value)
        yield Member(name=name, start=start, value=value, end=end)
        at = _skip_whitespace(text, end)
        if text[at : at + 1] != ",":
            return
        at = _skip_whitespace(text, at + 1)


MANIFEST, LOCK = "package.json", "package-lock.json"
ALL_TABLES = (*TABLES, "optionalDependencies", "peerDependencies")
OTHER_LOCKS = ("yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb")
INSTALLED_RECORD = ".package-lock.json"
"""npm's own record, in the format of a lock, of what it has installed into `node_modules`."""
NODE_MODULES = "/node_modules"


class NodeAdder(PackageAdder):
    """Installs all packages again: existing ones in the versions of the lock, or of `node_modules`."""

    folder = "node_modules"

    def manifest(self, base: Files) -> str:
        """See `PackageAdder`."""
        return MANIFEST

    def requested(self, base: Files, written: Mapping[str, str]) -> tuple[str, ...]:
        """See `PackageAdder`: each item is the table, a blank and `name@range`. Nothing else is read."""
        own = _parse_object(read_file_text(base, MANIFEST) or "{}")
        known = {name for table in ALL_TABLES for name in _get_table(own, table)}
        package = _parse_object(written.get(MANIFEST, "{}"))
        new = {
            table: {
                name: versions for name, versions in _get_table(package, table).items() if name not in known
            }
            for table in TABLES
        }
        new[TABLES[1]] = {
            name: versions for name, versions in new[TABLES[1]].items() if name not in new[TABLES[0]]
        }
        return Npm().wanted(json.dumps(new))

    def write_manifest(self, base: Files, new: Sequence[str]) -> str:
        """See `PackageAdder`."""
        text = read_file_text(base, MANIFEST)
        own = _parse_object(text or "{}")
        is_shrinkwrapped = "npm-shrinkwrap.json" in base
        if (
            MANIFEST not in base
            or "workspaces" in own
            or is_shrinkwrapped
            or _is_npm_6_lock(read_file_text(base, LOCK))
        ):
            raise PackagesRefused(
                f"packages can only be added to a project with a {MANIFEST}, without workspaces, and with no "
                f"{LOCK} or one of npm 7 or newer"
            )
        for one in new:
            table, _, requested = one.partition(" ")
            name, _, versions = requested.rpartition("@")
            text = insert_member(text, table, name, versions)
            own.setdefault(table, {})[name] = versions
        if _parse_object(text) != own:
            raise PackagesRefused(f"{MANIFEST} is written in a way that packages cannot be added to")
        return text

    async def fetch(
        self,
        base: Files,
        new: Sequence[str],
        work_folders: tuple[WorkFolder, WorkFolder],
        interpreter: Interpreter,
    ) -> AddedSet:
        """See `PackageAdder`."""
        first, second = work_folders
        manifest, before = self.write_manifest(base, new), _find_lock(base, interpreter)
        with_addresses = any("resolved" in one for one in parse_lock(before).values()) if before else False
        _write_files(first, manifest, before)
        await run_npm(["install", "--package-lock-only"], first, with_addresses=with_addresses)
        lock = first.read_text(LOCK)
        old = parse_lock(before) if before else {}
        new_entries = {path: one for path, one in parse_lock(lock).items() if old.get(path) != one}
        foreign_paths = [
            path for path, one in new_entries.items() if not one.get("integrity") or one.get("link")
        ]
        if foreign_paths:
            raise PackagesRefused(
                f"{', '.join(foreign_paths[:3])} does not come from the registry, or has no hash"
            )
        _write_files(second, manifest, lock)
        await run_npm(["ci"], second, with_addresses=with_addresses)
        installed = {path: one for path, one in new_entries.items() if (second.folder / path).is_dir()}
        names = (
            f"{path.rpartition('node_modules/')[2]}@{one.get('version')}" for path, one in installed.items()
        )
        return AddedSet(
            files={MANIFEST: manifest, **({LOCK: lock} if LOCK in base else {})}, names=tuple(names)
        )

    def outdated_locks(self, base: Files) -> tuple[str, ...]:
        """See `PackageAdder`."""
        return tuple(name for name in OTHER_LOCKS if name in base)


def _parse_object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise PackagesRefused(f"{MANIFEST} is not valid JSON: {fault}"[:200]) from fault
    if not isinstance(found, dict):
        raise PackagesRefused(f"{MANIFEST} is not an object")
    return found


def _get_table(package: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = package.get(name, {})
    if not isinstance(found, dict):
        raise PackagesRefused(f"{MANIFEST} has no table {name!r}")
    return found


def _is_npm_6_lock(lock: str) -> bool:
    return bool(lock) and "packages" not in _parse_object(lock)


def _find_lock(base: Files, interpreter: Interpreter) -> str:
    """Return the project's lock, or the content of its `node_modules` as one; empty without either."""
    if LOCK in base:
        return read_file_text(base, LOCK)
    shown = interpreter.toolchain.shown if interpreter.toolchain else {}
    folder = next((here for here, there in shown.items() if there == NODE_MODULES), None)
    content = read_regular_file(Path(folder) / INSTALLED_RECORD, MAX_LOCK_BYTES) if folder else None
    if content is None or len(content) > MAX_LOCK_BYTES:
        return ""
    own = _parse_object(read_file_text(base, MANIFEST))
    root = {key: own[key] for key in ("name", "version", *ALL_TABLES) if key in own}
    packages = {"": root, **parse_lock(content.decode("utf-8", "replace"))}
    return json.dumps({"lockfileVersion": 3, "requires": True, "packages": packages})


def _write_files(place: WorkFolder, manifest: str, lock: str) -> None:
    """Write the project's own manifest, whose scripts do not run, and its lock."""
    write_file_atomically(place.folder / MANIFEST, manifest.encode())
    if lock:
        write_file_atomically(place.folder / LOCK, lock.encode())

"""Modules of a Go project: `go.mod` and `go.sum`, written by the go command itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence

from suture.core.safe_files import write_file_atomically
from suture.project.languages import Interpreter
from suture.sandbox.packages.additions.adder import AddedSet, Files, PackageAdder, newline_of, text_in
from suture.sandbox.packages.client import run_client
from suture.sandbox.packages.go_installer import REQUIRED, go_client, go_reach, lay_modules, plain_line
from suture.sandbox.packages.installer import FETCHED, PackagesRefused, Place
from suture.sandbox.tuning import MAX_REQUESTED_PACKAGES

MOD, SUM, INDIRECT = "go.mod", "go.sum", "indirect"
BLOCK = re.compile(r"require\s*\(")
LINE = re.compile(r"^\s*(?:require\s+)?(?P<name>\S+)\s+v")


class GoAdder(PackageAdder):
    """All modules come anew: those that are there, by the hashes of the project's own `go.sum`."""

    folder = "modules"

    def manifest(self, base: Files) -> str:
        """See `PackageAdder`."""
        return MOD

    def asked(self, base: Files, written: Mapping[str, str]) -> tuple[str, ...]:
        """See `PackageAdder`: of a `go.mod` its `require` lines count, and of these what is not indirect."""
        known = {line.partition(" ")[0] for line, _ in _requires(text_in(base, MOD))}
        new: dict[str, str] = {}
        for line, remark in _requires(written.get(MOD, "")):
            name = line.partition(" ")[0]
            if name in known or remark == INDIRECT:
                continue
            if not REQUIRED.fullmatch(line):
                raise PackagesRefused(f"{MOD}: {line[:200]!r} is no module of a proxy with its version")
            new.setdefault(name, line)
        if len(new) > MAX_REQUESTED_PACKAGES:
            raise PackagesRefused(f"{MOD} asks for more than {MAX_REQUESTED_PACKAGES} packages")
        return tuple(new.values())

    def written_down(self, base: Files, new: Sequence[str]) -> str:
        """See `PackageAdder`: into the block of what is required directly, else a line for each at the
        end.
        """
        if MOD not in base or "go.work" in base or any(path.startswith("vendor/") for path in base):
            raise PackagesRefused(f"modules are added where {MOD} says which, and no go.work and no vendor/")
        text = text_in(base, MOD)
        newline = newline_of(text)
        for one in new:
            text = _with_line(text, one, newline)
        return text

    async def fetch(
        self, base: Files, new: Sequence[str], places: tuple[Place, Place], interpreter: Interpreter
    ) -> AddedSet:
        """See `PackageAdder`."""
        first, second = places
        client = go_client()
        reach = await go_reach(client.argv_here, first) if first.walled else None
        _write(first, MOD, self.written_down(base, new))
        _write(first, SUM, text_in(base, SUM))
        every = [f"{name}/...@{version}" for name, _, version in (one.partition(" ") for one in new)]
        await run_client(client, ["get", "-d", *every], first, reach)
        mod, sums = first.text_of(MOD), first.text_of(SUM)
        await asyncio.to_thread(_require_asked, self.asked(base, {MOD: mod}), new)
        await run_client(client, ["mod", "download"], first, reach)
        (first.folder / FETCHED).rename(second.folder / FETCHED)
        await lay_modules(mod, sums, second, ["download"])
        before = {line for line, _ in _requires(text_in(base, MOD))}
        names = [line for line, _ in _requires(mod) if line not in before]
        return AddedSet(files={MOD: mod, SUM: sums}, names=tuple(line.replace(" ", "@") for line in names))


def _require_asked(found: Sequence[str], new: Sequence[str]) -> None:
    if set(found) != set(new):
        raise PackagesRefused(f"go would take {', '.join(found)[:200]}: ask for these versions")


def _write(place: Place, name: str, text: str) -> None:
    write_file_atomically(place.folder / name, text.encode())


def _requires(text: str) -> Iterator[tuple[str, str]]:
    """Each required module with its version, and what is remarked on it."""
    inside = False
    for line in text.splitlines():
        plain, remark = plain_line(line), line.partition("//")[2].strip()
        if BLOCK.fullmatch(plain):
            inside = True
        elif plain == ")":
            inside = False
        elif plain and (inside or plain.startswith("require ")):
            yield plain.removeprefix("require "), remark


def _with_line(text: str, required: str, newline: str) -> str:
    lines = text.splitlines(keepends=True)
    start = next((at for at in range(len(lines)) if _is_direct_block(lines, at)), None)
    if start is None:
        joint = "" if not text or text.endswith("\n") else newline
        return f"{text}{joint}{newline}require {required}{newline}"
    end = next(at for at in range(start, len(lines)) if plain_line(lines[at]) == ")")
    after = (at for at in range(start + 1, end) if _name_in(lines[at]) > required.partition(" ")[0])
    lines.insert(next(after, end), f"\t{required}{newline}")
    return "".join(lines)


def _is_direct_block(lines: Sequence[str], at: int) -> bool:
    """Whether a block begins there that holds what is required directly."""
    if not BLOCK.fullmatch(plain_line(lines[at])):
        return False
    rest = list(lines[at + 1 :])
    end = next((number for number, line in enumerate(rest) if plain_line(line) == ")"), None)
    return end is not None and any(
        plain_line(line) and line.partition("//")[2].strip() != INDIRECT for line in rest[:end]
    )


def _name_in(line: str) -> str:
    found = LINE.match(line)
    return found["name"] if found else ""

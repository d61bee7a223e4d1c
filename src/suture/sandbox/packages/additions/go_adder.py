"""Add modules to a Go project: `go.mod` and `go.sum` are written by the go command itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence

from suture.core.safe_files import write_file_atomically
from suture.project.languages import Interpreter
from suture.sandbox.packages.additions.adder import (
    AddedSet,
    Files,
    PackageAdder,
    detect_newline,
    read_file_text,
)
from suture.sandbox.packages.client import run_client
from suture.sandbox.packages.go_installer import (
    REQUIREMENT,
    find_go_access,
    find_go_client,
    strip_comment,
    verify_and_move_modules,
)
from suture.sandbox.packages.installer import FETCHED, PackagesRefused, WorkFolder
from suture.sandbox.tuning import MAX_REQUESTED_PACKAGES

GO_MOD, GO_SUM, INDIRECT = "go.mod", "go.sum", "indirect"
REQUIRE_BLOCK = re.compile(r"require\s*\(")
REQUIRE_LINE = re.compile(r"^\s*(?:require\s+)?(?P<name>\S+)\s+v")


class GoAdder(PackageAdder):
    """Fetches all modules again: existing ones are checked by the hashes of the project's own `go.sum`."""

    folder = "modules"

    def manifest(self, base: Files) -> str:
        """See `PackageAdder`."""
        return GO_MOD

    def requested(self, base: Files, written: Mapping[str, str]) -> tuple[str, ...]:
        """See `PackageAdder`: of a `go.mod`, only `require` lines without `// indirect` count."""
        known = {line.partition(" ")[0] for line, _ in _parse_requirements(read_file_text(base, GO_MOD))}
        new: dict[str, str] = {}
        for line, remark in _parse_requirements(written.get(GO_MOD, "")):
            name = line.partition(" ")[0]
            if name in known or remark == INDIRECT:
                continue
            if not REQUIREMENT.fullmatch(line):
                raise PackagesRefused(f"{GO_MOD}: {line[:200]!r} is not a module with its version")
            new.setdefault(name, line)
        if len(new) > MAX_REQUESTED_PACKAGES:
            raise PackagesRefused(f"{GO_MOD} asks for more than {MAX_REQUESTED_PACKAGES} packages")
        return tuple(new.values())

    def write_manifest(self, base: Files, new: Sequence[str]) -> str:
        """See `PackageAdder`: into the block of direct requirements, or as lines at the end."""
        if GO_MOD not in base or "go.work" in base or any(path.startswith("vendor/") for path in base):
            raise PackagesRefused(
                f"modules can only be added to a project with a {GO_MOD}, no go.work and no vendor/"
            )
        text = read_file_text(base, GO_MOD)
        newline = detect_newline(text)
        for one in new:
            text = _insert_requirement(text, one, newline)
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
        client = find_go_client()
        access = await find_go_access(client.host_argv, first) if first.sandboxed else None
        _write_file(first, GO_MOD, self.write_manifest(base, new))
        _write_file(first, GO_SUM, read_file_text(base, GO_SUM))
        every = [f"{name}/...@{version}" for name, _, version in (one.partition(" ") for one in new)]
        await run_client(client, ["get", "-d", *every], first, access)
        mod, sums = first.read_text(GO_MOD), first.read_text(GO_SUM)
        await asyncio.to_thread(_check_versions, self.requested(base, {GO_MOD: mod}), new)
        await run_client(client, ["mod", "download"], first, access)
        (first.folder / FETCHED).rename(second.folder / FETCHED)
        await verify_and_move_modules(mod, sums, second, ["download"])
        before = {line for line, _ in _parse_requirements(read_file_text(base, GO_MOD))}
        names = [line for line, _ in _parse_requirements(mod) if line not in before]
        return AddedSet(
            files={GO_MOD: mod, GO_SUM: sums}, names=tuple(line.replace(" ", "@") for line in names)
        )


def _check_versions(found: Sequence[str], new: Sequence[str]) -> None:
    if set(found) != set(new):
        raise PackagesRefused(f"go would install {', '.join(found)[:200]}: request these versions")


def _write_file(place: WorkFolder, name: str, text: str) -> None:
    write_file_atomically(place.folder / name, text.encode())


def _parse_requirements(text: str) -> Iterator[tuple[str, str]]:
    """Yield each required module with its version, and the comment on it."""
    inside = False
    for line in text.splitlines():
        plain, remark = strip_comment(line), line.partition("//")[2].strip()
        if REQUIRE_BLOCK.fullmatch(plain):
            inside = True
        elif plain == ")":
            inside = False
        elif plain and (inside or plain.startswith("require ")):
            yield plain.removeprefix("require "), remark


def _insert_requirement(text: str, required: str, newline: str) -> str:
    lines = text.splitlines(keepends=True)
    start = next((at for at in range(len(lines)) if _is_direct_block(lines, at)), None)
    if start is None:
        separator = "" if not text or text.endswith("\n") else newline
        return f"{text}{separator}{newline}require {required}{newline}"
    end = next(at for at in range(start, len(lines)) if strip_comment(lines[at]) == ")")
    after = (at for at in range(start + 1, end) if _parse_name(lines[at]) > required.partition(" ")[0])
    lines.insert(next(after, end), f"\t{required}{newline}")
    return "".join(lines)


def _is_direct_block(lines: Sequence[str], at: int) -> bool:
    """Return whether a block with direct requirements begins at line `at`."""
    if not REQUIRE_BLOCK.fullmatch(strip_comment(lines[at])):
        return False
    rest = list(lines[at + 1 :])
    end = next((number for number, line in enumerate(rest) if strip_comment(line) == ")"), None)
    return end is not None and any(
        strip_comment(line) and line.partition("//")[2].strip() != INDIRECT for line in rest[:end]
    )


def _parse_name(line: str) -> str:
    found = REQUIRE_LINE.match(line)
    return found["name"] if found else ""

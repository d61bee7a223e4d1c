"""Add modules to a Go project: `go.mod` and `go.sum` are written by the go command itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from suture.core.safe_files import write_file_atomically
from suture.project.languages import Interpreter
from suture.sandbox.packages.additions.adder import (
    AddedSet,
    Files,
    PackageAdder,
    WorkFolders,
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
from suture.sandbox.packages.installer import FETCHED, MAX_QUOTED_CHARS, PackagesRefused
from suture.sandbox.tuning import MAX_REQUESTED_PACKAGES

GO_MOD, GO_SUM, INDIRECT = "go.mod", "go.sum", "indirect"
REQUIRE_BLOCK = re.compile(r"require\s*\(")
"""Matches the line that begins a block of requirements."""
REQUIRE_LINE = re.compile(r"^\s*(?:require\s+)?(?P<name>\S+)\s+v")
"""Matches a requirement, in a block or alone."""


class GoAdder(PackageAdder):
    """Fetches all modules again: existing ones are checked by the hashes of the project's own `go.sum`."""

    folder = "modules"

    def manifest_path(self, base: Files) -> str:
        """See `PackageAdder`."""
        return GO_MOD

    def find_requested(self, base: Files, written: Mapping[str, str]) -> tuple[str, ...]:
        """See `PackageAdder`: of a `go.mod`, only `require` lines without `// indirect` count."""
        existing_names = {
            line.partition(" ")[0] for line, _ in _find_requirements(read_file_text(base, GO_MOD))
        }
        requirements: dict[str, str] = {}
        for line, comment in _find_requirements(written.get(GO_MOD, "")):
            name = line.partition(" ")[0]
            if name in existing_names or comment == INDIRECT:
                continue
            if not REQUIREMENT.fullmatch(line):
                raise PackagesRefused(
                    f"{GO_MOD}: {line[:MAX_QUOTED_CHARS]!r} is not a module with its version"
                )
            requirements.setdefault(name, line)
        if len(requirements) > MAX_REQUESTED_PACKAGES:
            raise PackagesRefused(f"{GO_MOD} asks for more than {MAX_REQUESTED_PACKAGES} packages")
        return tuple(requirements.values())

    def write_manifest(self, base: Files, requirements: Sequence[str]) -> str:
        """See `PackageAdder`: into the block of direct requirements, or as lines at the end."""
        if GO_MOD not in base or "go.work" in base or any(path.startswith("vendor/") for path in base):
            raise PackagesRefused(
                f"modules can only be added to a project with a {GO_MOD}, no go.work and no vendor/"
            )
        text = read_file_text(base, GO_MOD)
        newline = detect_newline(text)
        for requirement in requirements:
            text = _insert_requirement(text, requirement, newline)
        return text

    async def fetch(
        self, base: Files, requirements: Sequence[str], work_folders: WorkFolders, interpreter: Interpreter
    ) -> AddedSet:
        """See `PackageAdder`."""
        resolve_folder, install_folder = work_folders
        client = find_go_client()
        access = await find_go_access(client.host_argv, resolve_folder) if resolve_folder.sandboxed else None
        manifest = self.write_manifest(base, requirements)
        write_file_atomically(resolve_folder.folder / GO_MOD, manifest.encode())
        write_file_atomically(resolve_folder.folder / GO_SUM, read_file_text(base, GO_SUM).encode())
        # `module/...@version` asks for all packages of a module in this version.
        queries = [requirement.replace(" ", "/...@", 1) for requirement in requirements]
        await run_client(client, ["get", "-d", *queries], resolve_folder, access)
        go_mod, go_sum = resolve_folder.read_text(GO_MOD), resolve_folder.read_text(GO_SUM)
        resolved = self.find_requested(base, {GO_MOD: go_mod})
        if set(resolved) != set(requirements):
            raise PackagesRefused(
                f"go would install {', '.join(resolved)[:MAX_QUOTED_CHARS]}: request these versions"
            )
        await run_client(client, ["mod", "download"], resolve_folder, access)
        (resolve_folder.folder / FETCHED).rename(install_folder.folder / FETCHED)
        await verify_and_move_modules(go_mod, go_sum, install_folder, ["download"])
        existing = {line for line, _ in _find_requirements(read_file_text(base, GO_MOD))}
        added = [line for line, _ in _find_requirements(go_mod) if line not in existing]
        return AddedSet(
            files={GO_MOD: go_mod, GO_SUM: go_sum}, names=tuple(line.replace(" ", "@") for line in added)
        )


def _find_requirements(text: str) -> Iterator[tuple[str, str]]:
    """Yield `(module and version, comment)` for each requirement; anything else is skipped."""
    in_block = False
    for line in text.splitlines():
        statement, comment = strip_comment(line), line.partition("//")[2].strip()
        if REQUIRE_BLOCK.fullmatch(statement):
            in_block = True
        elif statement == ")":
            in_block = False
        elif statement and (in_block or statement.startswith("require ")):
            yield statement.removeprefix("require "), comment


def _insert_requirement(text: str, requirement: str, newline: str) -> str:
    """Return a `go.mod` with one more requirement, before the first name that sorts after its own."""
    lines = text.splitlines(keepends=True)
    start = next((index for index in range(len(lines)) if _is_direct_block(lines, index)), None)
    if start is None:
        separator = "" if not text or text.endswith("\n") else newline
        return f"{text}{separator}{newline}require {requirement}{newline}"
    end = next(index for index in range(start, len(lines)) if strip_comment(lines[index]) == ")")
    name = requirement.partition(" ")[0]
    later_lines = (index for index in range(start + 1, end) if _parse_name(lines[index]) > name)
    lines.insert(next(later_lines, end), f"\t{requirement}{newline}")
    return "".join(lines)


def _is_direct_block(lines: Sequence[str], start: int) -> bool:
    """Return whether a block with direct requirements begins at line `start`."""
    if not REQUIRE_BLOCK.fullmatch(strip_comment(lines[start])):
        return False
    following_lines = lines[start + 1 :]
    end = next((index for index, line in enumerate(following_lines) if strip_comment(line) == ")"), None)
    return end is not None and any(
        strip_comment(line) and line.partition("//")[2].strip() != INDIRECT for line in following_lines[:end]
    )


def _parse_name(line: str) -> str:
    """Return the module that a line of a block requires; empty if there is none."""
    match = REQUIRE_LINE.match(line)
    return match["name"] if match else ""

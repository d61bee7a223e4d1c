"""Node's packages, by npm: no script of a package runs, and nothing comes from past the index."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from suture.packages.installer import PackagesRefused, run_client

OPTIONS = (
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    "--omit-lockfile-registry-resolved",
    "--git=/nonexistent/git",  # what a package requires might name a repository
    # Since npm 11, before anything is asked of an address; older ones do not know these words.
    *(f"--allow-{source}=none" for source in ("git", "remote", "file", "directory")),
    "--fetch-retries=1",
    "--fetch-timeout=30000",
    "--loglevel=error",
)
UNREACHABLE = re.compile(
    r"\b(?:ENOTFOUND|ECONNREFUSED|ECONNRESET|EAI_AGAIN|ETIMEDOUT|ERR_SOCKET_TIMEOUT|ENETUNREACH|EHOSTUNREACH"
    r"|ENOTCACHED|FETCH_ERROR|E40[137]|E429|E5\d\d)\b|(?:self.signed|unable to (?:get|verify)) .*certificate"
)
NAME = re.compile(r"(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*")
RANGE = re.compile(r"[\w.^~<>=*|+ -]{0,100}")
MOST = 100
LONGEST = 200
TABLES = ("dependencies", "devDependencies")


class Npm:
    """The `dependencies` and `devDependencies` of `package.json`."""

    manifest = "package.json"
    lock = "package-lock.json"
    folder = "node_modules"

    def wanted(self, manifest: str) -> tuple[str, ...]:
        """See `Installer`: each is the table, a blank and `name@range`."""
        try:
            package = json.loads(manifest or "{}")
        except (ValueError, RecursionError) as fault:
            raise PackagesRefused(f"{self.manifest} is no JSON: {fault}"[:200]) from fault
        found: list[str] = []
        for table in TABLES:
            asked = package.get(table, {}) if isinstance(package, dict) else None
            if not isinstance(asked, dict):
                raise PackagesRefused(f"{self.manifest} is no object with a table {table!r}")
            for name, versions in sorted(asked.items()):
                if not _is_plain(name, versions):
                    why = "is no package of the index by its version"
                    raise PackagesRefused(f"{self.manifest}: {name[:200]!r} {why}")
                found.append(f"{table} {name}@{versions}")
        if len(found) > MOST:
            raise PackagesRefused(f"{self.manifest} asks for more than {MOST} packages")
        return tuple(found)

    async def resolve(self, wanted: Sequence[str], place: Path, python: str) -> str:
        """See `Installer`."""
        _lay(wanted, place)
        await run_client("npm", ["npm", "install", "--package-lock-only", *OPTIONS], place, UNREACHABLE)
        lock = (place / self.lock).read_text("utf-8")
        elsewhere = [path for path, one in _packages(lock).items() if not _is_of_index(one)]
        if elsewhere:
            raise PackagesRefused(f"{', '.join(elsewhere[:3])} comes from past the index, or has no hash")
        return lock

    async def install(self, wanted: Sequence[str], lock: str, place: Path, python: str) -> None:
        """See `Installer`."""
        _lay(wanted, place)
        (place / self.lock).write_text(lock, "utf-8")
        await run_client("npm", ["npm", "ci", *OPTIONS], place, UNREACHABLE)

    def names(self, lock: str, place: Path) -> tuple[str, ...]:
        """See `Installer`: a lock names those of other machines too."""
        there = {path: one for path, one in _packages(lock).items() if (place / path).is_dir()}
        return tuple(
            f"{path.rpartition('node_modules/')[2]}@{one.get('version')}" for path, one in there.items()
        )


def _is_plain(name: str, versions: object) -> bool:
    known = isinstance(versions, str) and RANGE.fullmatch(versions)
    return bool(known and len(name) <= LONGEST and NAME.fullmatch(name))


def _lay(wanted: Sequence[str], place: Path) -> None:
    """A manifest of our own that asks for the same, and names no script."""
    package: dict[str, Any] = {"private": True}
    for one in wanted:
        table, _, asked = one.partition(" ")
        name, _, versions = asked.rpartition("@")
        package.setdefault(table, {})[name] = versions
    (place / "package.json").write_text(json.dumps(package), "utf-8")


def _packages(lock: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(lock).get("packages", {})
    return {path: one for path, one in found.items() if path}


def _is_of_index(package: dict[str, Any]) -> bool:
    """An address is left in a lock only where a package is not the index's."""
    return bool(package.get("integrity")) and "resolved" not in package and not package.get("link")

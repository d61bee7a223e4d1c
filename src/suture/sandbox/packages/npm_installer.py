"""The user's own settings of npm: which registries, and what they ask of who comes."""
# FIXME doc of sandbox/packages/npm_installer: """Node's packages, by npm: no script of a package runs, and nothing comes from past the index."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from suture.core.safe_files import read_regular_file
from suture.sandbox import BOX, WRITABLE_DIR, Mount, discover_toolchain
from suture.sandbox.packages.client import TEMPORARY, Client, absent, own_environment, run_client
from suture.sandbox.packages.installer import Installer, PackagesRefused, Place
from suture.sandbox.packages.network_access import NetworkAccess, ask, certificates, origins_of
from suture.sandbox.tuning import MAX_NPMRC_BYTES, MAX_REQUESTED_PACKAGES, MAX_REQUIREMENT_CHARS

REGISTRY = re.compile(r"registry|@[^:]+:registry")
LOGIN = re.compile(r"//(?P<server>[^/\s]+)(?:/\S*)?:(?:_authToken|_auth|_password|username)")
OF_ENVIRONMENT = re.compile(r"npm_config_(?P<name>//.+)", re.IGNORECASE)
VARIABLE = re.compile(r"\$\{(\w+)\}")


async def npm_reach(npm: tuple[str, ...], place: Place) -> NetworkAccess:
    """What npm may reach: the user's registries. Where one keeps its archives elsewhere, the user names that.

    Args:
        npm: The program on this machine.
        place: Where it runs.

    Raises:
        PrerequisiteError: It is not there.
    """
    output = await ask("npm", (*npm, "config", "list", "--json"), place.folder, own_environment())
    settings = _object(output)
    registries = {name: str(url) for name, url in settings.items() if REGISTRY.fullmatch(name) and url}
    path = settings.get("cafile") or os.environ.get("NODE_EXTRA_CA_CERTS", "")
    certificate, files = certificates(str(path))
    lines = [f"{name}={url}" for name, url in registries.items()]
    origins = origins_of(registries.values(), place.hosts)
    lines += [f"{name}={value}" for name, value in _logins(settings) if _server(name) in map(str, origins)]
    lines += [f"cafile={certificate}"] if certificate else []
    lines += ["strict-ssl=false"] if settings.get("strict-ssl") is False else []
    return NetworkAccess(
        origins=origins,
        variables={
            "npm_config_cache": f"{WRITABLE_DIR}/{TEMPORARY}/npm",
            "npm_config_globalconfig": f"{BOX}/none",
            "npm_config_noproxy": "",
            **({"NODE_EXTRA_CA_CERTS": certificate} if certificate else {}),
        },
        files={**files, ".npmrc": "".join(f"{line}\n" for line in lines).encode()},
        proxy=str(settings.get("https-proxy") or settings.get("proxy") or ""),
    )


def _object(output: str) -> Mapping[str, Any]:
    try:
        found = json.loads(output)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _logins(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What registries ask of who comes; npm does not tell that, but it stands in the user's files."""
    for key in ("globalconfig", "userconfig"):
        content = read_regular_file(
            Path(str(settings.get(key) or "/nonexistent")), MAX_NPMRC_BYTES, follow=True
        )
        yield from _set_in((content or b"").decode("utf-8", "replace").splitlines())
    for name, value in os.environ.items():
        match = OF_ENVIRONMENT.fullmatch(name)
        if match is not None and LOGIN.fullmatch(match["name"]):
            yield match["name"], value


def _server(login: str) -> str:
    """The server that a login is for, as an `Origin` is written."""
    match = LOGIN.fullmatch(login)
    return match["server"].lower() if match is not None else ""


def _set_in(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, _, value = line.partition("=")
        if LOGIN.fullmatch(name.strip()):
            yield name.strip(), VARIABLE.sub(lambda match: os.environ.get(match[1], ""), value.strip())


OPTIONS = (
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    "--git=/nonexistent/git",  # what a package requires might name a repository
    # Since npm 11, before anything is asked of an address; older ones do not know these words.
    *(f"--allow-{source}=none" for source in ("git", "remote", "file", "directory")),
    "--fetch-retries=1",
    "--fetch-timeout=30000",
    "--loglevel=error",
)
NO_ADDRESSES = "--omit-lockfile-registry-resolved"
UNREACHABLE = re.compile(
    r"\b(?:ENOTFOUND|ECONNREFUSED|ECONNRESET|EAI_AGAIN|ETIMEDOUT|ERR_SOCKET_TIMEOUT|ENETUNREACH|EHOSTUNREACH"
    r"|ENOTCACHED|FETCH_ERROR|E40[137]|E429|E5\d\d)\b|(?:self.signed|unable to (?:get|verify)) .*certificate"
)
NAME = re.compile(r"(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*")
RANGE = re.compile(r"[\w.^~<>=*|+ -]{0,100}")
TABLES = ("dependencies", "devDependencies")


class Npm(Installer):
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
        if len(found) > MAX_REQUESTED_PACKAGES:
            raise PackagesRefused(f"{self.manifest} asks for more than {MAX_REQUESTED_PACKAGES} packages")
        return tuple(found)

    async def resolve(self, wanted: Sequence[str], place: Place) -> str:
        """See `Installer`."""
        _lay(wanted, place.folder)
        await run_npm(["install", "--package-lock-only"], place)
        lock = place.text_of(self.lock)
        elsewhere = [path for path, one in packages_in(lock).items() if not _is_of_index(one)]
        if elsewhere:
            raise PackagesRefused(f"{', '.join(elsewhere[:3])} comes from past the index, or has no hash")
        return lock

    async def install(self, wanted: Sequence[str], lock: str, place: Place) -> None:
        """See `Installer`."""
        _lay(wanted, place.folder)
        (place.folder / self.lock).write_text(lock, "utf-8")
        await run_npm(["ci"], place)

    def versions(self, lock: str) -> Mapping[str, str]:
        """See `Installer`."""
        top = {path.removeprefix("node_modules/"): one for path, one in packages_in(lock).items()}
        return {name.lower(): str(one.get("version")) for name, one in top.items()}

    def names(self, lock: str, folder: Path) -> tuple[str, ...]:
        """See `Installer`: a lock names those of other machines too."""
        there = {path: one for path, one in packages_in(lock).items() if (folder / path).is_dir()}
        return tuple(
            f"{path.rpartition('node_modules/')[2]}@{one.get('version')}" for path, one in there.items()
        )


def _is_plain(name: str, versions: object) -> bool:
    known = isinstance(versions, str) and RANGE.fullmatch(versions)
    return bool(known and len(name) <= MAX_REQUIREMENT_CHARS and NAME.fullmatch(name))


async def run_npm(argv: Sequence[str], place: Place, *, with_addresses: bool = False) -> None:
    """Run npm in a folder of ours; no script runs.

    Args:
        argv: Its command.
        place: The folder.
        with_addresses: Whether a lock says where each package lies, as npm writes it where nobody asks.

    Raises:
        PackagesRefused: It ended with an error.
        PrerequisiteError: It is not there, there is no wall, or the index cannot be reached.
    """
    client = _client()
    reach = await npm_reach(client.argv_here, place) if place.walled else None
    options = OPTIONS if with_addresses else (*OPTIONS, NO_ADDRESSES)
    await run_client(client, [*argv, *options], place, reach)


def _client() -> Client:
    """The npm on the user's PATH, with its Node.

    Raises:
        PrerequisiteError: It is not there, or is a version manager's word for one.
    """
    found = shutil.which("npm")
    script = Path(found).resolve() if found else None
    if script is None or script.name != "npm-cli.js":
        raise absent("npm", "it is not on PATH" if script is None else "what is on PATH is no plain npm")
    node = discover_toolchain(None, os.environ, "javascript")
    assert node is not None
    own = str(script.parent.parent)
    shown = {**node.shown, own: own}
    return Client(
        name="npm",
        argv=("node", str(script)),
        argv_here=("npm",),
        shown=tuple(Mount(source=here, target=there) for here, there in shown.items()),
        folders=node.folders,
        unreachable=UNREACHABLE,
    )


def _lay(wanted: Sequence[str], place: Path) -> None:
    """A manifest of our own that asks for the same, and names no script."""
    package: dict[str, Any] = {"private": True}
    for one in wanted:
        table, _, asked = one.partition(" ")
        name, _, versions = asked.rpartition("@")
        package.setdefault(table, {})[name] = versions
    (place / "package.json").write_text(json.dumps(package), "utf-8")


def packages_in(lock: str) -> dict[str, dict[str, Any]]:
    """What a lock holds: path -> what it says of the package there.

    Raises:
        PackagesRefused: It cannot be read.
    """
    try:
        found = json.loads(lock)["packages"]
    except (ValueError, RecursionError, KeyError, TypeError) as fault:
        raise PackagesRefused("npm left a lock that cannot be read") from fault
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise PackagesRefused("npm left a lock that cannot be read")
    return {path: one for path, one in found.items() if path}


def _is_of_index(package: dict[str, Any]) -> bool:
    """An address is left in a lock only where a package is not the index's."""
    return bool(package.get("integrity")) and "resolved" not in package and not package.get("link")

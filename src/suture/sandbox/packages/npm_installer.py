"""Install Node's packages with npm: no script of a package runs, and nothing comes from outside the registry.

The user's own npm settings decide which registries are used, and with which logins.
"""

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
from suture.sandbox.packages.client import (
    TEMP_DIR,
    Client,
    NetworkAccess,
    filtered_environment,
    missing_client,
    parse_origins,
    query_client_settings,
    read_certificates,
    run_client,
)
from suture.sandbox.packages.installer import MAX_QUOTED_CHARS, Installer, PackagesRefused, WorkFolder
from suture.sandbox.tuning import MAX_CLIENT_SETTINGS_BYTES, MAX_REQUESTED_PACKAGES, MAX_REQUIREMENT_CHARS

REGISTRY = re.compile(r"registry|@[^:]+:registry")
"""Names of npm's settings that name a registry: the default one, or that of a scope."""
LOGIN = re.compile(r"//(?P<server>[^/\s]+)(?:/\S*)?:(?:_authToken|_auth|_password|username)")
"""Matches the name of a setting that holds a login; the group is the server that it is for."""
LOGIN_VARIABLE = re.compile(r"npm_config_(?P<name>//.+)", re.IGNORECASE)
"""Matches the environment variable of a setting that holds credentials."""
VARIABLE = re.compile(r"\$\{(\w+)\}")
"""Matches a reference to an environment variable in an `.npmrc`."""


async def find_npm_access(npm: tuple[str, ...], work_folder: WorkFolder) -> NetworkAccess:
    """Return what npm may reach: the user's registries, and the servers in `work_folder.hosts`.

    Args:
        npm: The start of npm's command on this machine.
        work_folder: Where npm runs to print its settings.

    Raises:
        PrerequisiteError: npm is missing, or does not print its settings.
    """
    output = await query_client_settings(
        "npm", (*npm, "config", "list", "--json"), work_folder.folder, filtered_environment()
    )
    settings = _parse_settings(output)
    registries = {name: str(url) for name, url in settings.items() if REGISTRY.fullmatch(name) and url}
    path = settings.get("cafile") or os.environ.get("NODE_EXTRA_CA_CERTS", "")
    certificate, files = read_certificates(str(path))
    origins = parse_origins(registries.values(), work_folder.hosts)
    lines = [f"{name}={url}" for name, url in registries.items()]
    lines += [
        f"{name}={value}" for name, value in _read_logins(settings) if _server(name) in map(str, origins)
    ]
    if certificate:
        lines.append(f"cafile={certificate}")
    if settings.get("strict-ssl") is False:
        lines.append("strict-ssl=false")
    return NetworkAccess(
        origins=origins,
        variables={
            "npm_config_cache": f"{WRITABLE_DIR}/{TEMP_DIR}/npm",
            "npm_config_globalconfig": f"{BOX}/none",  # a file that does not exist
            "npm_config_noproxy": "",  # from the sandbox, every server is reached through the proxy
            **({"NODE_EXTRA_CA_CERTS": certificate} if certificate else {}),
        },
        files={**files, ".npmrc": "".join(f"{line}\n" for line in lines).encode()},
        proxy=str(settings.get("https-proxy") or settings.get("proxy") or ""),
    )


def _parse_settings(output: str) -> Mapping[str, Any]:
    try:
        settings = json.loads(output)
    except ValueError:
        return {}
    return settings if isinstance(settings, dict) else {}


def _read_logins(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the logins of registries. npm does not print them, but they are in the user's files."""
    for key in ("globalconfig", "userconfig"):
        npmrc = Path(str(settings.get(key) or "/nonexistent"))  # npm prints where its files would be
        content = read_regular_file(npmrc, MAX_CLIENT_SETTINGS_BYTES, follow=True)
        yield from _parse_logins((content or b"").decode("utf-8", "replace").splitlines())
    for name, value in os.environ.items():
        match = LOGIN_VARIABLE.fullmatch(name)
        if match is not None and LOGIN.fullmatch(match["name"]):
            yield match["name"], value


def _server(login: str) -> str:
    """Return the server that a login is for, in the format of `str(Origin)`."""
    match = LOGIN.fullmatch(login)
    return match["server"].lower() if match is not None else ""


def _parse_logins(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield `(name, value)` of each login among the lines of an `.npmrc`, with its variables filled in."""
    for line in lines:
        name, _, value = line.partition("=")
        if LOGIN.fullmatch(name.strip()):
            yield name.strip(), VARIABLE.sub(lambda match: os.environ.get(match[1], ""), value.strip())


OPTIONS = (
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    "--git=/nonexistent/git",  # a package's requirement may name a repository
    # Since npm 11 these are refused before an address is contacted; older versions do not know the options.
    *(f"--allow-{source}=none" for source in ("git", "remote", "file", "directory")),
    "--fetch-retries=1",
    "--fetch-timeout=30000",
    "--loglevel=error",
)
"""Options of every call: no script runs, and only the registry is contacted."""
NO_ADDRESSES = "--omit-lockfile-registry-resolved"
"""Keeps the addresses of the user's registries out of the lock."""
UNREACHABLE = re.compile(
    r"\b(?:ENOTFOUND|ECONNREFUSED|ECONNRESET|EAI_AGAIN|ETIMEDOUT|ERR_SOCKET_TIMEOUT|ENETUNREACH|EHOSTUNREACH"
    r"|ENOTCACHED|FETCH_ERROR|E40[137]|E429|E5\d\d)\b|(?:self.signed|unable to (?:get|verify)) .*certificate"
)
"""Matches npm's output if the registry cannot be reached."""
PACKAGE_NAMES = {"yarn": ("yarn", "@yarnpkg/cli-dist")}
"""Program -> the packages that it may belong to, if its name is not the only one. The second is Yarn 2 or later."""
PACKAGE_NAME = re.compile(r"(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*")
VERSION_RANGE = re.compile(r"[\w.^~<>=*|+ -]{0,100}")
TABLES = ("dependencies", "devDependencies")
"""The tables of `package.json` whose packages are installed."""


class Npm(Installer):
    """The `dependencies` and `devDependencies` of `package.json`."""

    manifest = "package.json"
    lock = "package-lock.json"
    folder = "node_modules"

    def parse_manifest(self, manifest: str) -> tuple[str, ...]:
        """See `Installer`: each requirement is the table, a blank and `name@range`."""
        try:
            package = json.loads(manifest or "{}")
        except (ValueError, RecursionError) as fault:
            raise PackagesRefused(f"{self.manifest} is not valid JSON: {fault}"[:MAX_QUOTED_CHARS]) from fault
        requirements: list[str] = []
        for table in TABLES:
            requested = package.get(table, {}) if isinstance(package, dict) else None
            if not isinstance(requested, dict):
                raise PackagesRefused(f"{self.manifest} is not an object with a table {table!r}")
            for name, versions in sorted(requested.items()):
                if not _is_plain_requirement(name, versions):
                    raise PackagesRefused(
                        f"{self.manifest}: {name[:MAX_QUOTED_CHARS]!r} is not a package of the registry with a version "
                        "range"
                    )
                requirements.append(f"{table} {name}@{versions}")
        if len(requirements) > MAX_REQUESTED_PACKAGES:
            raise PackagesRefused(f"{self.manifest} asks for more than {MAX_REQUESTED_PACKAGES} packages")
        return tuple(requirements)

    async def resolve(self, requirements: Sequence[str], work_folder: WorkFolder) -> str:
        """See `Installer`."""
        _write_manifest(requirements, work_folder.folder)
        await run_npm(["install", "--package-lock-only"], work_folder)
        lock = work_folder.read_text(self.lock)
        # npm keeps an address in this lock only for a package that is not from the registry (`NO_ADDRESSES`).
        require_from_registry(
            path
            for path, entry in parse_lock(lock).items()
            if not entry.get("integrity") or "resolved" in entry or entry.get("link")
        )
        return lock

    async def install(self, requirements: Sequence[str], lock: str, work_folder: WorkFolder) -> None:
        """See `Installer`."""
        _write_manifest(requirements, work_folder.folder)
        (work_folder.folder / self.lock).write_text(lock, "utf-8")
        await run_npm(["ci"], work_folder)

    def versions(self, lock: str) -> Mapping[str, str]:
        """See `Installer`.

        The result also holds packages inside other packages, as `a/node_modules/b`. No version bound has such
        a name, so they pass `require_within`.
        """
        entries = {path.removeprefix("node_modules/"): entry for path, entry in parse_lock(lock).items()}
        return {name.lower(): str(entry.get("version")) for name, entry in entries.items()}

    def names(self, lock: str, folder: Path) -> tuple[str, ...]:
        """See `Installer`. A lock also names packages of other platforms."""
        return installed_names(parse_lock(lock), folder)


def installed_names(entries: Mapping[str, Mapping[str, Any]], folder: Path) -> tuple[str, ...]:
    """Return `name@version` of the entries of a lock that are installed below a folder."""
    return tuple(
        f"{path.rpartition('node_modules/')[2]}@{entry.get('version')}"
        for path, entry in entries.items()
        if (folder / path).is_dir()
    )


def require_from_registry(foreign_paths: Iterable[str]) -> None:
    """Raise `PackagesRefused` if any path in a lock is that of a package from outside the registry."""
    paths = list(foreign_paths)
    if paths:
        raise PackagesRefused(f"{', '.join(paths[:3])} does not come from the registry, or has no hash")


def _is_plain_requirement(name: str, versions: object) -> bool:
    """Return whether a requirement is a package of the registry with a range of versions."""
    is_range = isinstance(versions, str) and VERSION_RANGE.fullmatch(versions)
    return bool(is_range and len(name) <= MAX_REQUIREMENT_CHARS and PACKAGE_NAME.fullmatch(name))


async def run_npm(argv: Sequence[str], work_folder: WorkFolder, *, with_addresses: bool = False) -> None:
    """Run npm in one of Suture's folders; no script runs.

    Args:
        argv: Its command.
        with_addresses: Whether the lock says where each package comes from, as npm writes it by default.

    Raises:
        PackagesRefused: npm ended with an error.
        PrerequisiteError: npm is missing, no sandbox can be built, or the registry cannot be reached.
    """
    client = _client()
    access = await find_npm_access(client.host_argv, work_folder) if work_folder.sandboxed else None
    options = OPTIONS if with_addresses else (*OPTIONS, NO_ADDRESSES)
    await run_client(client, [*argv, *options], work_folder, access)


def _client() -> Client:
    """Return the npm on the user's PATH, with its Node. A version manager's shim is refused."""
    path = shutil.which("npm")
    script = Path(path).resolve() if path else None
    if script is None or script.name != "npm-cli.js":
        raise missing_client(
            "npm", "it is not on PATH" if script is None else "the one on PATH is not a plain npm"
        )
    return node_client("npm", script)


def node_client(name: str, script: Path) -> Client:
    """Return a package manager that is a script in the folder `bin` of its own package for Node.

    The whole package is shown in the sandbox, so another folder is refused: with a script `~/bin/yarn.js`, it would be
    the user's home. Corepack is refused too, because it downloads and runs the version that a manifest names.

    Raises:
        PrerequisiteError: The script does not belong to a package of this name.
    """
    node = discover_toolchain(None, os.environ, "javascript")
    assert node is not None
    folder = script.parent.parent
    manifest = read_regular_file(folder / "package.json", MAX_CLIENT_SETTINGS_BYTES) or b"{}"
    package_name = _parse_settings(manifest.decode("utf-8", "replace")).get("name")
    is_own_package = package_name in PACKAGE_NAMES.get(name, (name,))
    if not is_own_package or Path.home().resolve().is_relative_to(folder):
        raise missing_client(name, f"the one on PATH is not a plain {name}")
    mounts = {**node.shown, str(folder): str(folder)}
    return Client(
        name=name,
        argv=("node", str(script)),
        host_argv=(name,),
        mounts=tuple(Mount(source=source, target=target) for source, target in mounts.items()),
        folders=node.folders,
        unreachable=UNREACHABLE,
    )


def _write_manifest(requirements: Sequence[str], work_folder: Path) -> None:
    """Write a manifest of Suture's own that requests the same packages and names no script."""
    package: dict[str, Any] = {"private": True}
    for requirement in requirements:
        table, _, requested = requirement.partition(" ")
        name, _, versions = requested.rpartition("@")
        package.setdefault(table, {})[name] = versions
    (work_folder / "package.json").write_text(json.dumps(package), "utf-8")


def parse_lock(lock: str) -> dict[str, dict[str, Any]]:
    """Return the entries of a lock: path below the project -> what the lock says about that package.

    Raises:
        PackagesRefused: The lock cannot be parsed.
    """
    try:
        packages = json.loads(lock)["packages"]
    except (ValueError, RecursionError, KeyError, TypeError) as fault:
        raise PackagesRefused("npm wrote a lock that cannot be parsed") from fault
    if not isinstance(packages, dict) or not all(isinstance(entry, dict) for entry in packages.values()):
        raise PackagesRefused("npm wrote a lock that cannot be parsed")
    return {path: entry for path, entry in packages.items() if path}

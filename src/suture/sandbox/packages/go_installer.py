"""Install Go modules with the go command: only from the user's module proxy, never from a repository."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from suture.core.safe_files import write_file_atomically
from suture.sandbox import WRITABLE_DIR, Mount, discover_toolchain
from suture.sandbox.packages.client import (
    TEMP_DIR,
    Client,
    NetworkAccess,
    add_netrc_login,
    filtered_environment,
    missing_client,
    mounts_for_local_indexes,
    parse_origins,
    query_client_settings,
    read_certificates,
    run_client,
)
from suture.sandbox.packages.index_proxy import parse_origin
from suture.sandbox.packages.installer import (
    FETCHED,
    MAX_QUOTED_CHARS,
    Installer,
    PackagesRefused,
    WorkFolder,
)
from suture.sandbox.tuning import MAX_GO_ROUNDS, MAX_REQUESTED_PACKAGES

QUERIED_VARIABLES = ("GOPROXY", "GOSUMDB", "GONOSUMDB", "GOINSECURE")
"""The user's settings that decide where modules come from and how they are checked."""
FIXED_VARIABLES = {
    "GO111MODULE": "on",
    "GOFLAGS": "-mod=mod -modcacherw",  # otherwise the unpacked modules are read-only and cannot be removed
    "GOMODCACHE": f"{WRITABLE_DIR}/{FETCHED}",
    "GOPATH": f"{WRITABLE_DIR}/{TEMP_DIR}/go",
    "GOCACHE": f"{WRITABLE_DIR}/{TEMP_DIR}/built",
    "GONOPROXY": "none",  # no module bypasses the proxy
    "GOVCS": "*:off",  # no repository is read
    "GOTOOLCHAIN": "local",  # no other version of go is fetched
    "GOTELEMETRY": "off",
}
"""Variables that the go command always gets."""
UNREACHABLE = re.compile(
    r"dial tcp|proxyconnect|connection re(?:fused|set)|i/o timeout|x509:|: (?:401|403|407|429|5\d\d) "
)
"""Matches go's output if a module proxy cannot be reached."""
# A requirement, a statement and a line of `go.sum`, without comments.
REQUIREMENT = re.compile(r"(?P<name>[\w~-]+(?:\.[\w~-]+)+(?:/[\w.~-]+)*) (?P<version>v\d+\.\d+\.\d+[\w.+-]*)")
STATEMENT = re.compile(r"go \d+\.\d+(?:\.\d+)?|module [\w./~-]+")
CHECKSUM = re.compile(r"(?P<name>\S+) (?P<version>v\S+) h1:[\w+/=]+")
INDIRECT = "indirect"
"""Go's comment on a module that only other modules require."""
LOOPBACK_ALIAS = "here.invalid"
"""Go uses no proxy for a loopback address. This reserved name (RFC 2606) replaces it."""
DEFAULT_STATEMENTS = ("module fetched", "go 1.17")
"""The first lines of a manifest that belongs to no project. From Go 1.17 on, a module lists all that it requires, so
that go need not read the manifests of the listed modules."""
MAX_MESSAGE_CHARS = 300
"""Length of a message with the names of modules. Chosen by judgement; not measured."""


class Go(Installer):
    """The `require` lines of `go.mod`."""

    manifest = "go.mod"
    lock = "go.sum"
    folder = "modules"

    def parse_manifest(self, manifest: str) -> tuple[str, ...]:
        """See `Installer`: each is a module, a blank and its version. Indirect requirements are left out."""
        direct = [text for text, comment in _parse_requirements(manifest) if comment != INDIRECT]
        if len(direct) > MAX_REQUESTED_PACKAGES:
            raise PackagesRefused(f"{self.manifest} asks for more than {MAX_REQUESTED_PACKAGES} packages")
        return tuple(direct)

    async def resolve(self, requirements: Sequence[str], work_folder: WorkFolder) -> str:
        """See `Installer`. The modules are left for `install`.

        The requirements of modules are added to the manifest and resolved again until nothing is new. Only
        then does the lock contain all that go needs.
        """
        client = find_go_client()
        access = await find_go_access(client.host_argv, work_folder) if work_folder.sandboxed else None
        lock = ""
        for _ in range(MAX_GO_ROUNDS):
            manifest = self._complete_manifest(requirements, lock)
            await asyncio.to_thread(
                write_file_atomically, work_folder.folder / self.manifest, manifest.encode()
            )
            await run_client(client, ["mod", "download", "all"], work_folder, access)
            lock = work_folder.read_text(self.lock)
            if self._complete_manifest(requirements, lock) == manifest:
                return lock
        raise PackagesRefused(
            f"the requirements of {', '.join(requirements)} cannot be resolved"[:MAX_MESSAGE_CHARS]
        )

    async def install(self, requirements: Sequence[str], lock: str, work_folder: WorkFolder) -> None:
        """See `Installer`. No server can be reached; modules are compared with the hashes in the lock."""
        manifest = self._complete_manifest(requirements, lock)
        await verify_and_move_modules(manifest, lock, work_folder, ["download", "all"])

    def versions(self, lock: str) -> Mapping[str, str]:
        """See `Installer`. Of a module that is not used, a lock contains only the hash of its `go.mod`."""
        matches = filter(None, map(CHECKSUM.fullmatch, lock.splitlines()))
        return {
            match["name"]: match["version"] for match in matches if not match["version"].endswith("/go.mod")
        }

    def names(self, lock: str, folder: Path) -> tuple[str, ...]:
        """See `Installer`."""
        return tuple(f"{name}@{version}" for name, version in self.versions(lock).items())

    def project_files(self, manifest: str, lock: str) -> Mapping[str, str]:
        """See `Installer`. Go rejects a `go.mod` that omits indirect requirements, so they are added."""
        versions = self.versions(lock)
        for text, comment in _parse_requirements(manifest):
            name, _, version = text.partition(" ")
            if comment == INDIRECT and versions.get(name) != version:
                raise PackagesRefused(f"{self.manifest}: nothing requires {text}: leave out indirect modules")
        statements = [line for line in map(strip_comment, manifest.splitlines()) if STATEMENT.fullmatch(line)]
        return {
            self.manifest: self._complete_manifest(self.parse_manifest(manifest), lock, statements),
            self.lock: lock,
        }

    def _complete_manifest(
        self, requirements: Sequence[str], lock: str, statements: Sequence[str] = DEFAULT_STATEMENTS
    ) -> str:
        """Return a manifest that requires everything in a lock."""
        versions = self.versions(lock)
        direct = [requirement.partition(" ") for requirement in requirements]
        direct_names = {name for name, _, _ in direct}
        lines = [f"\t{name} {versions.get(name, version)}" for name, _, version in direct]
        lines += [
            f"\t{name} {version} // {INDIRECT}"
            for name, version in versions.items()
            if name not in direct_names
        ]
        return "\n".join([*statements, "", "require (", *lines, ")", ""])


async def verify_and_move_modules(
    go_mod: str, go_sum: str, work_folder: WorkFolder, download: Sequence[str]
) -> None:
    """Compare the content of `FETCHED` with its hashes, and rename it to `Go.folder`.

    Args:
        go_mod: The content of the manifest.
        go_sum: The content of the lock.
        work_folder: A folder with nothing but `FETCHED`.
        download: The arguments of `go mod` that read all modules.

    Raises:
        PackagesRefused: Something else was fetched.
        PrerequisiteError: Go is missing, or no sandbox can be built.
    """
    await asyncio.to_thread(write_file_atomically, work_folder.folder / Go.manifest, go_mod.encode())
    await asyncio.to_thread(write_file_atomically, work_folder.folder / Go.lock, go_sum.encode())
    client = find_go_client()
    offline = replace(client, variables={**client.variables, "GOPROXY": "off", "GOSUMDB": "off"})
    for verb in (download, ["verify"]):
        await run_client(offline, ["mod", *verb], work_folder)
    if work_folder.read_text(Go.lock) != go_sum:
        raise PackagesRefused(f"the modules that were fetched are not those of {Go.lock}")
    (work_folder.folder / FETCHED).rename(work_folder.folder / Go.folder)


def strip_comment(line: str) -> str:
    """Return a line of a `go.mod` without its comment."""
    return " ".join(line.partition("//")[0].split())


def _parse_requirements(manifest: str) -> Iterator[tuple[str, str]]:
    """Yield `(module and version, comment)` for each requirement.

    Raises:
        PackagesRefused: The file contains something else: a replacement, another toolchain, an exclusion.
    """
    in_block = False
    for line in manifest.splitlines():
        text, comment = strip_comment(line), line.partition("//")[2].strip()
        if not text or (not in_block and STATEMENT.fullmatch(text)):
            continue
        if (text in ("require (", "require(") and not in_block) or (text == ")" and in_block):
            in_block = not in_block
            continue
        requirement = text if in_block else text.removeprefix("require ")
        if (not in_block and requirement == text) or not REQUIREMENT.fullmatch(requirement):
            raise PackagesRefused(f"go.mod: {text[:MAX_QUOTED_CHARS]!r} is not a module with its version")
        yield requirement, comment


def find_go_client() -> Client:
    """Return the go on the user's PATH, or raise `PrerequisiteError`."""
    go = discover_toolchain(None, os.environ, "go")
    if go is None:
        raise missing_client("go", "it is not on PATH")
    return Client(
        name="go",
        argv=("go",),
        host_argv=(go.program,),
        # What is shown at another path is the user's module cache; the client fetches into its own.
        mounts=tuple(
            Mount(source=source, target=target) for source, target in go.shown.items() if source == target
        ),
        folders=go.folders,
        variables=FIXED_VARIABLES,
        unreachable=UNREACHABLE,
    )


async def find_go_access(go: tuple[str, ...], work_folder: WorkFolder) -> NetworkAccess:
    """Return what go may reach: the user's module proxies, and the checksum database.

    Args:
        go: The start of go's command on this machine.
        work_folder: Where go runs to print its settings.

    Raises:
        PrerequisiteError: Go does not print its settings, or there is no proxy.
    """
    environ = {**filtered_environment(), "GOTOOLCHAIN": "local"}
    output = await query_client_settings(
        "go", (*go, "env", "-json", *QUERIED_VARIABLES), work_folder.folder, environ
    )
    settings = json.loads(output)
    entries = dict.fromkeys(re.split(r"[,|]", settings["GOPROXY"]))
    proxies = [entry for entry in entries if entry not in ("", "direct", "off")]
    if not proxies:
        raise missing_client("go", "GOPROXY names no proxy, and modules are never fetched from repositories")
    # GOSUMDB is "off", or a name with an optional key, and after a blank an optional address.
    databases = [
        database if "://" in database else f"https://{database.partition('+')[0]}"
        for database in settings["GOSUMDB"].split()[-1:]
        if database != "off"
    ]
    proxy_urls = list(map(_replace_loopback, proxies))
    certificate, files = read_certificates(os.environ.get("SSL_CERT_FILE", ""))
    variables = {name: settings.get(name) or "" for name in QUERIED_VARIABLES[1:]}
    variables["SSL_CERT_FILE"] = certificate
    return NetworkAccess(
        origins=parse_origins([*proxy_urls, *databases], work_folder.hosts),
        variables={
            **{name: value for name, value in variables.items() if value},
            "GOPROXY": ",".join(map(add_netrc_login, proxy_urls)),
        },
        files=files,
        mounts=mounts_for_local_indexes(proxies),
        host_aliases={LOOPBACK_ALIAS: "127.0.0.1"},
    )


def _replace_loopback(url: str) -> str:
    """Return the address of a module proxy with `LOOPBACK_ALIAS` in place of a loopback host."""
    origin = parse_origin(url, "http")
    if origin is None or not (origin.host == "localhost" or origin.host.startswith("127.")):
        return url
    return re.sub(rf"(//(?:[^/@]*@)?){re.escape(origin.host)}", rf"\1{LOOPBACK_ALIAS}", url, count=1)

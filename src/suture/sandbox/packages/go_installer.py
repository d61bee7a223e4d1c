"""Go's modules, by the go command: from the proxy of the user's alone, never from a repository."""

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
from suture.sandbox.packages.client import TEMPORARY, Client, absent, own_environment, run_client
from suture.sandbox.packages.index_proxy import Origin, origin_of
from suture.sandbox.packages.installer import FETCHED, PackagesRefused, Place
from suture.sandbox.packages.network_access import (
    NetworkAccess,
    ask,
    certificates,
    origins_of,
    shown_folders,
    with_login,
)
from suture.sandbox.tuning import MAX_GO_ROUNDS, MAX_REQUESTED_PACKAGES

ASKED = ("GOPROXY", "GOSUMDB", "GONOSUMDB", "GOINSECURE")
FIXED = {
    "GO111MODULE": "on",
    "GOFLAGS": "-mod=mod -modcacherw",  # else nobody can clear what it has unpacked
    "GOMODCACHE": f"{WRITABLE_DIR}/{FETCHED}",
    "GOPATH": f"{WRITABLE_DIR}/{TEMPORARY}/go",
    "GOCACHE": f"{WRITABLE_DIR}/{TEMPORARY}/built",
    "GONOPROXY": "none",
    "GOVCS": "*:off",
    "GOTOOLCHAIN": "local",
    "GOTELEMETRY": "off",
}
UNREACHABLE = re.compile(
    r"dial tcp|proxyconnect|connection re(?:fused|set)|i/o timeout|x509:|: (?:401|403|407|429|5\d\d) "
)
REQUIRED = re.compile(r"(?P<name>[\w~-]+(?:\.[\w~-]+)+(?:/[\w.~-]+)*) (?P<version>v\d+\.\d+\.\d+[\w.+-]*)")
STATED = re.compile(r"go \d+\.\d+(?:\.\d+)?|module [\w./~-]+")
SUM = re.compile(r"(?P<name>\S+) (?P<version>v\S+) h1:[\w+/=]+")
INDIRECT = "indirect"
NEAR = "here.invalid"
"""Go asks no proxy for a loopback. A name that can be nobody's (RFC 2606) stands for it."""
BUILT_IN_LANGUAGES = ("module fetched", "go 1.17")
"""From this version on a module says all that it requires, and go does not read on for the rest."""
LONGEST = 300


class Go:
    """The `require` lines of `go.mod`."""

    manifest = "go.mod"
    lock = "go.sum"
    folder = "modules"

    def wanted(self, manifest: str) -> tuple[str, ...]:
        """See `Installer`: each is a module, a blank and its version. What is indirect is asked of nobody."""
        found = [text for text, remark in _requires(manifest) if remark != INDIRECT]
        if len(found) > MAX_REQUESTED_PACKAGES:
            raise PackagesRefused(f"{self.manifest} asks for more than {MAX_REQUESTED_PACKAGES} packages")
        return tuple(found)

    async def resolve(self, wanted: Sequence[str], place: Place) -> str:
        """See `Installer`. The modules are left for `install`.

        What is required in turn is written down and looked at again, until nothing is added: only then does a
        lock hold what go asks for that is given all of it.
        """
        client = go_client()
        reach = await go_reach(client.argv_here, place) if place.walled else None
        lock = ""
        for _ in range(MAX_GO_ROUNDS):
            whole = self._whole(wanted, lock)
            await asyncio.to_thread(write_file_atomically, place.folder / self.manifest, whole.encode())
            await run_client(client, ["mod", "download", "all"], place, reach)
            lock = place.text_of(self.lock)
            if self._whole(wanted, lock) == whole:
                return lock
        raise PackagesRefused(f"there is no end to what {', '.join(wanted)} requires"[:LONGEST])

    async def install(self, wanted: Sequence[str], lock: str, place: Place) -> None:
        """See `Installer`. Nothing is in reach; modules are compared with the lock and with their hashes."""
        await lay_modules(self._whole(wanted, lock), lock, place, ["download", "all"])

    def versions(self, lock: str) -> Mapping[str, str]:
        """See `Installer`. Of a module that is not used only the hash of its `go.mod` is in a lock."""
        found = (SUM.fullmatch(line) for line in lock.splitlines())
        return {
            one["name"]: one["version"] for one in found if one and not one["version"].endswith("/go.mod")
        }

    def names(self, lock: str, folder: Path) -> tuple[str, ...]:
        """See `Installer`."""
        return tuple(f"{name}@{version}" for name, version in self.versions(lock).items())

    def laid(self, manifest: str, lock: str) -> Mapping[str, str]:
        """See `Installer`: go reads no `go.mod` that leaves out what is required in turn."""
        versions = self.versions(lock)
        for text, remark in _requires(manifest):
            name, _, version = text.partition(" ")
            if remark == INDIRECT and versions.get(name) != version:
                raise PackagesRefused(f"{self.manifest}: nothing requires {text}: leave out what is indirect")
        stated = [line for line in map(plain_line, manifest.splitlines()) if STATED.fullmatch(line)]
        return {self.manifest: self._whole(self.wanted(manifest), lock, stated), self.lock: lock}

    def _whole(self, wanted: Sequence[str], lock: str, stated: Sequence[str] = BUILT_IN_LANGUAGES) -> str:
        """A manifest that asks for all that a lock holds."""
        versions = self.versions(lock)
        asked = [one.partition(" ") for one in wanted]
        own = {name for name, _, _ in asked}
        lines = [f"\t{name} {versions.get(name, version)}" for name, _, version in asked]
        lines += [
            f"\t{name} {version} // {INDIRECT}" for name, version in versions.items() if name not in own
        ]
        return "\n".join([*stated, "", "require (", *lines, ")", ""])


async def lay_modules(go_mod: str, go_sum: str, place: Place, download: Sequence[str]) -> None:
    """Compare what lies in `FETCHED` with its hashes, and lay it where modules are shown from.

    Args:
        go_mod: What is required.
        go_sum: The hashes.
        place: A folder with nothing but what was fetched.
        download: The words of `go mod` that look at all of it.

    Raises:
        PackagesRefused: Something else was fetched.
        PrerequisiteError: Go is not there, or there is no wall.
    """
    await asyncio.to_thread(write_file_atomically, place.folder / Go.manifest, go_mod.encode())
    await asyncio.to_thread(write_file_atomically, place.folder / Go.lock, go_sum.encode())
    client = go_client()
    offline = replace(client, variables={**client.variables, "GOPROXY": "off", "GOSUMDB": "off"})
    for verb in (download, ["verify"]):
        await run_client(offline, ["mod", *verb], place)
    if place.text_of(Go.lock) != go_sum:
        raise PackagesRefused(f"the modules that were fetched are not those of {Go.lock}")
    (place.folder / FETCHED).rename(place.folder / Go.folder)


def plain_line(line: str) -> str:
    """A line of a `go.mod` without what is remarked on it."""
    return " ".join(line.partition("//")[0].split())


def _requires(manifest: str) -> Iterator[tuple[str, str]]:
    """Each required module with its version, and what is remarked on it.

    Raises:
        PackagesRefused: There is something else: a replacement, another toolchain, a folder to leave out.
    """
    inside = False
    for line in manifest.splitlines():
        text, remark = plain_line(line), line.partition("//")[2].strip()
        if not text or (not inside and STATED.fullmatch(text)):
            continue
        if (text in ("require (", "require(") and not inside) or (text == ")" and inside):
            inside = not inside
            continue
        required = text if inside else text.removeprefix("require ")
        if (not inside and required == text) or not REQUIRED.fullmatch(required):
            raise PackagesRefused(f"go.mod: {text[:200]!r} is no module of a proxy with its version")
        yield required, remark


def go_client() -> Client:
    """The go on the user's PATH.

    Raises:
        PrerequisiteError: It is not there.
    """
    go = discover_toolchain(None, os.environ, "go")
    if go is None:
        raise absent("go", "it is not on PATH")
    return Client(
        name="go",
        argv=("go",),
        argv_here=(go.program,),
        shown=tuple(Mount(source=here, target=there) for here, there in go.shown.items() if here == there),
        folders=go.folders,
        variables=FIXED,
        unreachable=UNREACHABLE,
    )


async def go_reach(go: tuple[str, ...], place: Place) -> NetworkAccess:
    """What go may reach: the user's proxies of modules, and the database of their hashes.

    Raises:
        PrerequisiteError: Go does not tell its settings, or there is no proxy.
    """
    environ = {**own_environment(), "GOTOOLCHAIN": "local"}
    settings = json.loads(await ask("go", (*go, "env", "-json", *ASKED), place.folder, environ))
    proxies = [one for one in re.split(r"[,|]", settings["GOPROXY"]) if one not in ("", "direct", "off")]
    if not proxies:
        raise absent("go", "GOPROXY names no proxy, and modules are not fetched from repositories")
    database = settings["GOSUMDB"].split()[-1:]
    known = [one if "://" in one else f"https://{one.partition('+')[0]}" for one in database if one != "off"]
    near = {one: _by_name(one) for one in proxies}
    certificate, files = certificates(os.environ.get("SSL_CERT_FILE", ""))
    variables = {name: settings.get(name) or "" for name in ASKED[1:]}
    return NetworkAccess(
        origins=origins_of([*near.values(), *known], place.hosts),
        variables={
            **{name: value for name, value in variables.items() if value},
            "GOPROXY": ",".join(map(with_login, near.values())),
            **({"SSL_CERT_FILE": certificate} if certificate else {}),
        },
        files=files,
        shown=shown_folders(proxies),
        names={NEAR: "127.0.0.1"},
    )


def _by_name(url: str) -> str:
    origin: Origin | None = origin_of(url, "http")
    if origin is None or not (origin.host == "localhost" or origin.host.startswith("127.")):
        return url
    return re.sub(rf"(//(?:[^/@]*@)?){re.escape(origin.host)}", rf"\1{NEAR}", url, count=1)

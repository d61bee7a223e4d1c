"""What a client may reach behind its wall, and what it is told of the user's own settings."""

from __future__ import annotations

import asyncio
import netrc
import os
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from suture.core.safe_files import read_regular_file
from suture.errors import PrerequisiteError
from suture.sandbox import BOX, Mount
from suture.sandbox.packages.index_proxy import Origin, origin_of
from suture.sandbox.tuning import MAX_CERTIFICATE_BYTES, SETTINGS_QUERY_TIMEOUT_S

CERTIFICATES = "certificates.pem"


@dataclass(frozen=True, kw_only=True)
class NetworkAccess:
    """What a client may reach, and what it is told.

    Attributes:
        origins: The servers of its index, and those that the user has named besides.
        variables: Environment variables.
        files: Path in its home -> content: settings of the user's that name a key, certificates.
        shown: Folders on this machine that are an index.
        proxy: The proxy that the user has set for this client; the environment's where there is none.
        names: Name that the client is told -> the server that is meant.
    """

    origins: frozenset[Origin] = frozenset()
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    shown: tuple[Mount, ...] = ()
    proxy: str = ""
    names: Mapping[str, str] = field(default_factory=dict)

    def proxy_for(self, origin: Origin) -> str:
        """The user's proxy on the way to a server; empty where none stands between.

        Raises:
            PrerequisiteError: It is none that is asked by plain HTTP.
        """
        found = self.proxy
        if not found and not urllib.request.proxy_bypass(origin.host):
            found = urllib.request.getproxies().get(origin.scheme, "")
        scheme, separator, _ = found.partition("://")
        if separator and scheme.lower() != "http":  # a login would go there in clear
            raise PrerequisiteError(
                f"packages are fetched behind a wall, out of which no proxy of {scheme}:// leads",
                remedy="name a proxy that begins with http://, or let packages be fetched with your rights "
                "and network: safety.fetch_packages = 'host'",
            )
        return found if not found or separator else f"http://{found}"


async def ask(client: str, argv: Sequence[str], folder: Path, environ: Mapping[str, str]) -> str:
    """What a client says of its own settings; it is asked on this machine, in an empty folder.

    Raises:
        PrerequisiteError: It is not there, or does not say.
    """
    why = ""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=folder,
            env=dict(environ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(SETTINGS_QUERY_TIMEOUT_S):
                said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode == 0:
            return said.decode("utf-8", "replace")
        why = f"it ended with {process.returncode}"
    except TimeoutError:
        why = f"no answer within {SETTINGS_QUERY_TIMEOUT_S:.0f} s"
    except OSError as fault:
        why = f"it cannot be started: {fault.strerror}"
    raise PrerequisiteError(
        f"packages are fetched by {client}, which does not tell its settings: {why}",
        remedy=f"install {client}, or leave packages out with --approve-deps never",
    )


def origins_of(urls: Iterable[str], hosts: Iterable[str]) -> frozenset[Origin]:
    """The servers of addresses, and those that the user has named besides, `HOST` or `HOST:PORT`."""
    found = {origin_of(url) for url in urls} | {origin_of(f"https://{host}") for host in hosts}
    return frozenset(origin for origin in found if origin is not None)


def local_folder(address: str) -> Path | None:
    """The folder that a `file:` address or a plain path means; `None` where there is none here."""
    path = Path(unquote(urlsplit(address).path) if address.startswith("file:") else address)
    return path if path.is_absolute() and path.is_dir() else None


def shown_folders(addresses: Iterable[str]) -> tuple[Mount, ...]:
    """Indexes on this machine. Their pages lead to files beside them, so the folder above is shown too.

    Where that holds the user's home, or is the root, the index alone is shown.
    """
    home = Path.home().resolve()
    shown: set[str] = set()
    for folder in filter(None, map(local_folder, addresses)):
        real, above = folder.resolve(), folder.resolve().parent
        private = above == Path("/") or home.is_relative_to(above) or above == Path("/tmp")
        shown.add(str(real if private or not (above / "simple").is_dir() else above))
        if real != folder:
            shown.add(str(folder))
    return tuple(Mount(source=folder, target=folder) for folder in sorted(shown))


def with_login(url: str) -> str:
    """An address with the name and password that the user's `.netrc` has for its server."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or "@" in parts.netloc:
        return url
    with suppress(OSError, netrc.NetrcParseError):
        known = netrc.netrc(os.environ.get("NETRC")).authenticators(parts.hostname or "")
        if known is not None:
            login = f"{quote(known[0], safe='')}:{quote(known[2] or '', safe='')}@"
            return urlunsplit(parts._replace(netloc=login + parts.netloc))
    return url


def certificates(path: str) -> tuple[str, dict[str, bytes]]:
    """Where a client finds the user's certificates behind the wall, and that file; empty without any.

    Raises:
        PrerequisiteError: They cannot be read.
    """
    if not path:
        return "", {}
    content = read_regular_file(Path(path), MAX_CERTIFICATE_BYTES, follow=True)
    if not content:
        raise PrerequisiteError(
            f"the certificates by which an index of packages is known cannot be read: {path!r}",
            remedy="name one file of them, in the settings of pip, npm or Go",
        )
    return f"{BOX}/{CERTIFICATES}", {CERTIFICATES: content}

"""What a client may reach from its sandbox, and which of the user's settings it gets."""

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
from suture.sandbox.packages.index_proxy import Origin, parse_origin
from suture.sandbox.tuning import MAX_CERTIFICATE_BYTES, SETTINGS_QUERY_TIMEOUT_S

CERTIFICATES_NAME = "certificates.pem"


@dataclass(frozen=True, kw_only=True)
class NetworkAccess:
    """What a client may reach, and the settings with which it does so.

    Attributes:
        origins: The servers of its index, and further ones that the user has named.
        variables: Environment variables.
        files: Path in its home -> content: the user's settings that contain a key, certificates.
        mounts: Mounts of local folders that are an index.
        proxy: The proxy that the user has configured for this client; empty for that of the environment.
        host_aliases: Host name that the client uses -> the real host.
    """

    origins: frozenset[Origin] = frozenset()
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    proxy: str = ""
    host_aliases: Mapping[str, str] = field(default_factory=dict)

    def proxy_for(self, origin: Origin) -> str:
        """Return the user's proxy for a server; empty if there is none.

        Raises:
            PrerequisiteError: The proxy does not speak plain HTTP.
        """
        proxy = self.proxy
        if not proxy and not urllib.request.proxy_bypass(origin.host):
            proxy = urllib.request.getproxies().get(origin.scheme, "")
        scheme, separator, _ = proxy.partition("://")
        if separator and scheme.lower() != "http":  # a login would be sent there unencrypted
            raise PrerequisiteError(
                f"packages are fetched in a sandbox, which cannot use a {scheme}:// proxy",
                remedy="name a proxy that begins with http://, or let packages be fetched with your rights "
                "and network: safety.fetch_packages = 'host'",
            )
        return proxy if not proxy or separator else f"http://{proxy}"


async def query_client_settings(
    client: str, argv: Sequence[str], folder: Path, environ: Mapping[str, str]
) -> str:
    """Return what a client prints about its own settings. It runs on the host, in an empty folder.

    Raises:
        PrerequisiteError: The client is missing, or does not answer.
    """
    reason = ""
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
                output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode == 0:
            return output.decode("utf-8", "replace")
        reason = f"it ended with {process.returncode}"
    except TimeoutError:
        reason = f"no answer within {SETTINGS_QUERY_TIMEOUT_S:.0f} s"
    except OSError as fault:
        reason = f"it cannot be started: {fault.strerror}"
    raise PrerequisiteError(
        f"packages are fetched by {client}, which does not print its settings: {reason}",
        remedy=f"install {client}, or leave packages out with --approve-deps never",
    )


def parse_origins(urls: Iterable[str], hosts: Iterable[str]) -> frozenset[Origin]:
    """Return the servers of addresses, and those that the user has named, as `HOST` or `HOST:PORT`."""
    origins = map(parse_origin, (*urls, *(f"https://{host}" for host in hosts)))
    return frozenset(origin for origin in origins if origin is not None)


def _local_folder(address: str) -> Path | None:
    """Return the folder that a `file:` address or a plain path means; `None` if it is not a local folder."""
    path = Path(unquote(urlsplit(address).path) if address.startswith("file:") else address)
    return path if path.is_absolute() and path.is_dir() else None


def mounts_for_local_indexes(addresses: Iterable[str]) -> tuple[Mount, ...]:
    """Return mounts for indexes on this machine.

    The pages of an index in a folder `simple` link to files beside that folder, so the parent is shown. If the
    parent is the root or `/tmp`, or contains the user's home, only the index is shown, because the client must
    not see what else is there.
    """
    home = Path.home().resolve()
    mounts: set[str] = set()
    for folder in filter(None, map(_local_folder, addresses)):
        resolved, parent = folder.resolve(), folder.resolve().parent
        is_private = parent == Path("/") or home.is_relative_to(parent) or parent == Path("/tmp")
        mounts.add(str(resolved if is_private or not (parent / "simple").is_dir() else parent))
        if resolved != folder:  # the client's settings name the link
            mounts.add(str(folder))
    return tuple(Mount(source=folder, target=folder) for folder in sorted(mounts))


def add_netrc_login(url: str) -> str:
    """Return an address with the name and password that the user's `.netrc` has for its server."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or "@" in parts.netloc:
        return url
    with suppress(OSError, netrc.NetrcParseError):
        login_entry = netrc.netrc(os.environ.get("NETRC")).authenticators(parts.hostname or "")
        if login_entry is not None:
            name, _, password = login_entry
            login = f"{quote(name, safe='')}:{quote(password or '', safe='')}@"
            return urlunsplit(parts._replace(netloc=login + parts.netloc))
    return url


def read_certificates(path: str) -> tuple[str, dict[str, bytes]]:
    """Return `(path inside the sandbox, files to write there)` for the certificates at `path`.

    Both are empty if `path` is.

    Raises:
        PrerequisiteError: The certificates cannot be read.
    """
    if not path:
        return "", {}
    content = read_regular_file(Path(path), MAX_CERTIFICATE_BYTES, follow=True)
    if not content:
        raise PrerequisiteError(
            f"the certificates of the package index cannot be read: {path!r}",
            remedy="name one certificate file in the settings of pip, npm or Go",
        )
    return f"{BOX}/{CERTIFICATES_NAME}", {CERTIFICATES_NAME: content}

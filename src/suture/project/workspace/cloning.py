"""A repository somewhere else as a plain folder here: its newest commit, and nothing that runs.

Whoever names the address is a stranger, and so is whoever answers there. Git reads no configuration but ours,
follows no redirect, and connects to the address that was looked at; what it brings is measured before it is
written out, links become plain files, and the repository itself is thrown away.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from suture.errors import StorageError, UsageError
from suture.project.workspace.git import GitLimits, run_git

PORTS = {"https": 443, "http": 80}
NO_CONFIGURATION = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_LFS_SKIP_SMUDGE": "1"}
REACHING = (
    *("-c", "http.followRedirects=false"),
    *("-c", "http.proxy="),
    *("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=20"),
)
OWN_AUTHORITIES = ("GIT_SSL_CAINFO", "GIT_SSL_CAPATH")
"""Where whoever serves keeps the certificates of an authority of their own."""
NO_LINKS = ("-c", "core.symlinks=false")
MOST_SAID_CHARS = 300


@dataclass(frozen=True, kw_only=True)
class CloneLimits:
    """What a repository may be.

    Attributes:
        files: The most files.
        total_bytes: The most bytes of all of them.
        seconds: How long it may take to come.
    """

    files: int
    total_bytes: int
    seconds: float = 120.0


def clone(
    url: str, target: Path, limits: CloneLimits, *, ref: str = "", private: Collection[str] = ()
) -> None:
    """Bring the newest commit of a repository.

    Args:
        url: An address of https, http or file, as `suture.interfaces.jobs.project_sources` lets it pass.
        target: The folder; it is not there yet.
        limits: What may come.
        ref: A branch or tag; its own first branch where not given.
        private: Hosts that may lie at an address which is not everybody's.

    Raises:
        UsageError: It lies at such an address, holds too much, or cannot be had.
        StorageError: The disk is full or gone.
        PrerequisiteError: Git is not installed.
    """
    pinned = _pinned(url, private)
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=target.parent, prefix=".new-", ignore_cleanup_errors=True
        ) as new:
            place = Path(new) / "project"
            _fetch(url, place, limits, ref=ref, pinned=pinned)
            _require_small(place, limits)
            environ = {**NO_CONFIGURATION, "GIT_DIR": str(place / ".git"), "GIT_WORK_TREE": str(place)}
            run_git(place, "read-tree", "HEAD", env=environ)
            run_git(place, "checkout-index", "--all", "--force", env=environ, options=NO_LINKS)
            shutil.rmtree(place / ".git")
            place.rename(target)
    except OSError as fault:
        raise StorageError(f"a repository cannot be kept: {fault.strerror}") from fault


def _fetch(url: str, place: Path, limits: CloneLimits, *, ref: str, pinned: tuple[str, ...]) -> None:
    words = ("--quiet", "--depth=1", "--no-checkout", "--single-branch", "--no-tags", "--template=")
    branch = (f"--branch={ref}",) if ref else ()
    # At home lies `.netrc`, which holds the passwords of whoever serves, not of whoever asks.
    environ = {**NO_CONFIGURATION, "GIT_ALLOW_PROTOCOL": urlsplit(url).scheme, "HOME": str(place.parent)}
    environ["XDG_CONFIG_HOME"] = environ["HOME"]
    environ.update({name: os.environ[name] for name in OWN_AUTHORITIES if os.environ.get(name)})
    most = GitLimits(seconds=limits.seconds, file_bytes=limits.total_bytes)
    try:
        run_git(
            place.parent, "clone", *words, *branch, "--", url, str(place),
            env=environ, options=(*REACHING, *pinned), limits=most,
        )  # fmt: skip
    except StorageError as fault:
        said = " ".join(fault.message.split())[:MOST_SAID_CHARS]
        raise UsageError(
            f"the repository cannot be had: {said}", remedy="see that the address and the ref are right"
        ) from fault


def _require_small(place: Path, limits: CloneLimits) -> None:
    listed = run_git(place, "ls-tree", "-r", "-l", "-z", "HEAD", env=NO_CONFIGURATION).split(b"\0")[:-1]
    sizes = [line.partition(b"\t")[0].split()[-1] for line in listed]
    if len(listed) > limits.files:
        raise UsageError(
            f"the repository holds more than {limits.files:,} files", remedy="have serve.archive_files raised"
        )
    if sum(int(size) for size in sizes if size.isdigit()) > limits.total_bytes:
        raise UsageError(
            f"the repository holds more than {limits.total_bytes // 2**20} MiB",
            remedy="have serve.unpacked_mb raised",
        )


def _pinned(url: str, private: Collection[str]) -> tuple[str, ...]:
    """Options by which git connects to the addresses that were looked at, and to no others.

    Raises:
        UsageError: One of them is this machine's, or of a network that is not everybody's.
    """
    parts = urlsplit(url)
    if parts.scheme not in PORTS:
        return ()
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as fault:
        raise UsageError(f"there is no host {host!r}", remedy="see that the address is right") from fault
    addresses = list(dict.fromkeys(str(one[4][0]).partition("%")[0] for one in found))
    if host not in private and not all(ipaddress.ip_address(one).is_global for one in addresses):
        raise UsageError(
            f"{host!r} lies at an address that is not everybody's",
            remedy="have it listed in serve.git_private",
        )
    shown = ",".join(f"[{one}]" if ":" in one else one for one in addresses)
    return ("-c", f"http.curloptResolve={host}:{port}:{shown}")

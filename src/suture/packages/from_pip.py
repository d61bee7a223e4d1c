"""Python's packages, by pip: wheels alone, since a source archive would run its own code to be built."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from suture.packages.installer import PackagesRefused, run_client

OPTIONS = (
    "--only-binary=:all:",
    "--no-input",
    "--disable-pip-version-check",
    "--retries=1",
    "--timeout=15",
    "-q",
)
UNREACHABLE = re.compile(
    r"Retrying \(|NewConnectionError|Max retries|ConnectTimeout|ReadTimeout|ProxyError|SSLError"
    r"|name resolution"
    r"|\b(?:401|403|407|429|5\d\d) (?:Client|Server) Error"
)
ALONE = """\
import runpy, sys
def refuse(event, _):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "os.system"):
        raise OSError("pip may start no program here")
sys.addaudithook(refuse)
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
"""Pip in a process that can start no other: `--only-binary` does not hold for an address that a wheel
requires, and what lies there would be built, which is to run it."""
PIP = (sys.executable, "-P", "-c", ALONE)
MOST = 100
"""Requirements of one project."""
LONGEST = 200
NO_PLACE = ("pytest", "_pytest", "pluggy", "sitecustomize", "usercustomize", "suture_report")
"""Beside Python's own modules, what no package may stand in for."""


class Pip:
    """Packages of `requirements.txt`."""

    manifest = "requirements.txt"
    lock = "requirements.lock"
    folder = "site"

    def wanted(self, manifest: str) -> tuple[str, ...]:
        """See `Installer`."""
        from packaging.requirements import InvalidRequirement, Requirement

        found: list[str] = []
        for line in manifest.replace("\\\n", " ").splitlines():
            text = re.sub(r"(?:^|\s)#.*|(?<=\S)\s+--hash=\S+", "", line.strip()).strip()
            if "$" in text:  # pip would put the user's environment in its place
                raise PackagesRefused(f"{self.manifest}: {text[:LONGEST]!r} has a sign that no package has")
            if not text:
                continue
            try:
                asked = Requirement(text[: LONGEST + 1])
            except InvalidRequirement as fault:
                raise PackagesRefused(
                    f"{self.manifest}: {text[:LONGEST]!r} is no package of an index with its versions"
                ) from fault
            if asked.url or len(text) > LONGEST:
                raise PackagesRefused(f"{self.manifest}: {asked.name!r} comes from past the index")
            found.append(str(asked))
        if len(found) > MOST:
            raise PackagesRefused(f"{self.manifest} asks for more than {MOST} packages")
        return tuple(found)

    async def resolve(self, wanted: Sequence[str], place: Path, python: str) -> str:
        """See `Installer`. Nothing is installed; the wheels are left for `install`."""
        wheels = place / "wheels"
        argv = ["download", *OPTIONS, *_of(python), "--dest", str(wheels), "--", *wanted]
        await run_client("pip", [*PIP, *argv], place, UNREACHABLE)
        return "".join(sorted(_locked(wheels)))

    async def install(self, wanted: Sequence[str], lock: str, place: Path, python: str) -> None:
        """See `Installer`. The wheels are those that `resolve` left."""
        named, wheels = place / self.lock, place / "wheels"
        named.write_text(lock)
        argv = [*OPTIONS, *_of(python), "--no-deps", "--require-hashes", "-r", str(named)]
        offline = ("--no-index", "--find-links", str(wheels), "--no-compile", "--target", str(place / "site"))
        await run_client("pip", [*PIP, "install", *argv, *offline], place, UNREACHABLE)
        own = {*sys.stdlib_module_names, *NO_PLACE}
        taken = sorted({path.name.partition(".")[0] for path in (place / "site").iterdir()} & own)
        if taken:
            raise PackagesRefused(f"a package of {', '.join(wanted)} takes the place of {', '.join(taken)}")

    def names(self, lock: str, place: Path) -> tuple[str, ...]:
        """See `Installer`."""
        return tuple(line.split()[0] for line in lock.splitlines() if "==" in line)


def _of(python: str) -> tuple[str, ...]:
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    return () if python == own else ("--python-version", python)


def _locked(wheels: Path) -> Iterator[str]:
    from packaging.utils import parse_wheel_filename

    for wheel in wheels.glob("*.whl"):
        name, version, _, _ = parse_wheel_filename(wheel.name)
        with wheel.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        yield f"{name}=={version} --hash=sha256:{digest}\n"

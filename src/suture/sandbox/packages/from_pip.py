"""Python's packages, by pip: wheels alone, since a source archive would run its own code to be built."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from suture.core.safe_files import open_plain
from suture.sandbox import Mount, own_interpreter
from suture.sandbox.packages.client import NO_CLIENT, Client, absent, run_client
from suture.sandbox.packages.installer import FETCHED, Installer, PackagesRefused, Place
from suture.sandbox.packages.pip_settings import pip_reach

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
SHOWN_AS = "/pip-client"
SHOWN = f"import sys\nsys.path.insert(0, {SHOWN_AS!r})\n{ALONE}"
BOUNDS = "bounds.txt"
MOST = 100
"""Requirements of one project."""
LONGEST = 200
NO_PLACE = ("pytest", "_pytest", "pluggy", "sitecustomize", "usercustomize", "suture_report")
"""Beside Python's own modules, what no package may stand in for."""


class Pip(Installer):
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

    async def resolve(self, wanted: Sequence[str], place: Place) -> str:
        """See `Installer`. Nothing is installed; the wheels are left for `install`."""
        from packaging.requirements import Requirement
        from packaging.utils import canonicalize_name

        names = [canonicalize_name(Requirement(one).name) for one in wanted]
        reach = await pip_reach(names, place) if place.walled else None
        bounds = [f"{name} {versions}" for name, versions in place.bounds.items() if versions]
        (place.folder / BOUNDS).write_text("\n".join(bounds))
        argv = ["download", *OPTIONS, *_of(place.python), "--constraint", BOUNDS, "--dest", FETCHED, "--"]
        await run_client(_client(), [*argv, *wanted], place, reach)
        return "".join(sorted(_locked(place.folder / FETCHED)))

    async def install(self, wanted: Sequence[str], lock: str, place: Place) -> None:
        """See `Installer`. Nothing is in reach: the wheels are those that `resolve` left."""
        (place.folder / self.lock).write_text(lock)
        argv = [*OPTIONS, *_of(place.python), "--no-deps", "--require-hashes", "-r", self.lock]
        offline = ("--no-index", "--find-links", FETCHED, "--no-compile", "--target", self.folder)
        await run_client(_client(), ["install", *argv, *offline], place)
        own = {*sys.stdlib_module_names, *NO_PLACE}
        taken = sorted({path.name.partition(".")[0] for path in (place.folder / self.folder).iterdir()} & own)
        if taken:
            raise PackagesRefused(f"a package of {', '.join(wanted)} takes the place of {', '.join(taken)}")

    def versions(self, lock: str) -> Mapping[str, str]:
        """See `Installer`."""
        pairs = (name.partition("==") for name in self.names(lock, Path()))
        return {name: version for name, _, version in pairs}

    def names(self, lock: str, folder: Path) -> tuple[str, ...]:
        """See `Installer`."""
        return tuple(line.split()[0] for line in lock.splitlines() if "==" in line)


def _of(python: str) -> tuple[str, ...]:
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    return () if python == own else ("--python-version", python)


def _locked(wheels: Path) -> Iterator[str]:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    for wheel in wheels.glob("*.whl"):
        file = open_plain(wheel)  # a client might have left a link
        if file is None:
            continue
        try:
            name, version, _, _ = parse_wheel_filename(wheel.name)
        except InvalidWheelFilename as fault:
            raise PackagesRefused(
                f"the index has a wheel of no usual name: {wheel.name[:LONGEST]!r}"
            ) from fault
        digest = hashlib.sha256()
        with file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        yield f"{name}=={version} --hash=sha256:{digest.hexdigest()}\n"


def _client() -> Client:
    """The pip of this environment; behind the wall it runs on the installation below.

    Raises:
        PrerequisiteError: It is not there.
    """
    found = importlib.util.find_spec("pip")
    if found is None or found.origin is None:
        raise absent("pip", NO_CLIENT)
    return Client(
        name="pip",
        argv=(own_interpreter().executable, "-I", "-B", "-c", SHOWN),
        argv_here=(sys.executable, "-P", "-c", ALONE),
        shown=(Mount(source=str(Path(found.origin).parent), target=f"{SHOWN_AS}/pip"),),
        variables={"PIP_USER": "0"},  # it excludes `--target`
        unreachable=UNREACHABLE,
    )

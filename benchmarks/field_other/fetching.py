"""What is downloaded once: archives of npm and Debian, what their tests need, and the mutation tools."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from field_set.cache import Cache

from field_other.packages import FOLDER, OtherPackage
from suture.errors import PrerequisiteError

__all__ = ["Store"]

FETCH_S = 600
STRYKER = "@stryker-mutator/instrumenter@9.6.1"
GO_SOURCES = "usr/share/gocode/src"


@dataclass(frozen=True, kw_only=True)
class Store:
    """Downloads that are the same on every machine.

    Attributes:
        cache: The cache that contains them; it also has the environment of the mutation tool for Go.
    """

    cache: Cache

    def tree(self, package: OtherPackage) -> Path:
        """Return the unpacked archive, as its authors published it.

        Raises:
            PrerequisiteError: It is missing and cannot be downloaded.
        """
        tree = self._place("trees", f"{package.folder_name}-{package.version}-{package.sha256[:12]}")
        if not tree.is_dir():
            with tempfile.TemporaryDirectory(dir=self._place("trees")) as folder:
                top = self._unpacked(package, self._archive(package), Path(folder))
                top.rename(tree)
        return tree

    def modules(self, package: OtherPackage) -> Path | None:
        """Return the `node_modules` that the tests need; `None` if they need none.

        Raises:
            PrerequisiteError: They are missing and cannot be installed.
        """
        if not package.needs:
            return None
        dated = ["--before", package.installed_before] if package.installed_before else []
        return self._installed(f"{package.folder_name}-{package.version}", [*package.needs], dated)

    def stryker(self) -> Path:
        """Return the `node_modules` of the mutation tool for JavaScript and TypeScript.

        Raises:
            PrerequisiteError: They are missing and cannot be installed.
        """
        return self._installed("stryker", [STRYKER], [])

    def _installed(self, name: str, specs: list[str], options: list[str]) -> Path:
        mark = hashlib.sha256(" ".join([*specs, *options]).encode()).hexdigest()[:12]
        place = self._place("modules", f"{name}-{mark}")
        if not (place / "ready").exists():
            self._require_online(name)
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            (place / "package.json").write_text("{}\n")
            quiet = ["--silent", "--ignore-scripts", "--no-audit", "--no-fund"]
            _run(["npm", "install", *quiet, *options, *specs], place, f"what the tests of {name} need")
            (place / "ready").touch()
        return place / "node_modules"

    def _archive(self, package: OtherPackage) -> Path:
        known = self._place("archives", package.sha256)
        if not known.exists():
            self._require_online(package.name)
            known.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory() as folder:
                wanted = f"{package.name}{'=' if package.language == 'go' else '@'}{package.version}"
                fetch = ["apt-get", "download"] if package.language == "go" else ["npm", "pack", "--silent"]
                _run([*fetch, wanted], Path(folder), wanted)
                (got,) = Path(folder).iterdir()
                shutil.move(got, known)
        if hashlib.sha256(known.read_bytes()).hexdigest() != package.sha256:
            known.unlink()
            raise PrerequisiteError(
                f"the archive of {package.name} was not what it should be", remedy="run this again"
            )
        return known

    def _unpacked(self, package: OtherPackage, archive: Path, folder: Path) -> Path:
        """Return the package's own root in a folder."""
        if package.language == "go":
            _run(["dpkg-deb", "-x", str(archive), str(folder)], folder, package.name)
            (first,) = {path.parent for path in folder.glob(f"{GO_SOURCES}/*/*/*/{package.code[0]}")}
            return first
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        (top,) = folder.iterdir()
        return top

    def _place(self, *names: str) -> Path:
        folder = self.cache.folder.joinpath("other", *names)
        folder.parent.mkdir(parents=True, exist_ok=True)
        if len(names) == 1:
            folder.mkdir(exist_ok=True)
        return folder

    def _require_online(self, what: str) -> None:
        if self.cache.offline:
            raise PrerequisiteError(
                f"{what} is not in {str(self.cache.folder)!r}", remedy="run this once without --offline"
            )


def _run(command: list[str], folder: Path, what: str) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=FETCH_S)
    except (OSError, subprocess.SubprocessError) as fault:
        said = getattr(fault, "stderr", "") or str(fault)
        raise PrerequisiteError(
            f"{what} cannot be had: {str(said).strip()[-300:]}", remedy="is the package index there?"
        ) from fault


RULES = FOLDER / "universal.py"
STRYKER_SCRIPT = FOLDER / "stryker.mjs"

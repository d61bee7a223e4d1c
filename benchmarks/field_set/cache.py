"""What is downloaded once: source distributions, and the environments of suites and of the mutation tool."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from field_set.packages import FOLDER, Package
from suture.errors import PrerequisiteError

__all__ = ["Cache"]

FETCH_S = 300
INSTALL_S = 900


@dataclass(frozen=True, kw_only=True)
class Cache:
    """A folder with files that are the same on every machine.

    Attributes:
        folder: The folder.
        offline: Whether nothing may be downloaded.
    """

    folder: Path
    offline: bool = False

    def tree(self, package: Package) -> Path:
        """Return the unpacked source distribution, as its authors published it.

        Raises:
            PrerequisiteError: It is missing and cannot be downloaded.
        """
        tree = self.folder / "trees" / f"{package.name}-{package.version}-{package.sha256[:12]}"
        if not tree.is_dir():
            archive = self._archive(package)
            with tempfile.TemporaryDirectory(dir=self._made("trees")) as folder:
                with tarfile.open(archive) as packed:
                    packed.extractall(folder, filter="data")
                (top,) = Path(folder).iterdir()
                top.rename(tree)
        return tree

    def environment(self, name: str) -> Path:
        """Return a virtual environment with the packages that `name.txt` beside this file lists.

        Raises:
            PrerequisiteError: It is missing and cannot be created.
        """
        listed = FOLDER / f"{name}.txt"
        # A changed list gets a new environment, so that results of different environments are not mixed up.
        mark = hashlib.sha256(listed.read_bytes() + sys.version.encode()).hexdigest()[:12]
        place = self.folder / "environments" / f"{name}-{mark}"
        ready = place / "ready"
        if not ready.exists():
            self._require_online(f"the environment {name!r}")
            shutil.rmtree(place, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(place)], INSTALL_S, f"a virtual environment at {place}")
            pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "-r", str(listed)]
            _run(pip, INSTALL_S, f"the packages of {listed.name}")
            ready.touch()
        return place

    def _archive(self, package: Package) -> Path:
        folder = self._made("archives")
        known = folder / package.sha256
        if not known.exists():
            self._require_online(f"{package.name} {package.version}")
            with tempfile.TemporaryDirectory(dir=folder) as fresh:
                wanted = f"{package.name}=={package.version} --hash=sha256:{package.sha256}"
                self.download(wanted, Path(fresh)).rename(known)
        if hashlib.sha256(known.read_bytes()).hexdigest() != package.sha256:
            known.unlink()
            raise PrerequisiteError(
                f"the archive of {package.name} was not what it should be", remedy="run this again"
            )
        return known

    def download(self, wanted: str, folder: Path) -> Path:
        """Download one source distribution into a folder.

        Args:
            wanted: A line of a requirements file, with a hash if it is known.
            folder: An empty folder.

        Raises:
            PrerequisiteError: It cannot be downloaded.
        """
        python = self.environment("backends") / "bin" / "python"
        listed = folder / "wanted.txt"
        listed.write_text(wanted + "\n", "utf-8")
        # pip builds a package's metadata before it releases the archive. With build isolation it
        # would download a build system for each package.
        options = ["--no-binary", ":all:", "--no-deps", "--no-build-isolation"]
        command = [str(python), "-m", "pip", "download", "--quiet", *options]
        _run([*command, "--dest", f"{folder}/got", "-r", str(listed)], FETCH_S, wanted.partition(" ")[0])
        (got,) = (folder / "got").iterdir()
        return got

    def _require_online(self, what: str) -> None:
        if self.offline:
            raise PrerequisiteError(
                f"{what} is not in {str(self.folder)!r}", remedy="run this once without --offline"
            )

    def _made(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _run(command: list[str], seconds: float, what: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=seconds)
    except subprocess.CalledProcessError as fault:
        told = (fault.stderr or fault.stdout).strip().splitlines()
        last = next((line for line in reversed(told) if "ERROR" in line), told[-1] if told else "")
        raise PrerequisiteError(
            f"{what} cannot be had: {last}", remedy="is the package index there?"
        ) from fault
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise PrerequisiteError(
            f"{what} cannot be had: {fault}", remedy="is the package index there?"
        ) from fault

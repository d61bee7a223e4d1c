"""A wheel of this checkout, installed in an environment that cannot see the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from bare_pytest import add_pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Installed:
    """A virtual environment with the wheel in it.

    Attributes:
        wheel: The path of the wheel.
        venv: The environment. The wheel's dependencies come from the environment that runs the tests.
    """

    wheel: Path
    venv: Path

    def run(
        self, *command: str, cwd: Path, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment with few environment variables."""
        return subprocess.run(
            [str(self.venv / "bin" / command[0]), *command[1:]],
            cwd=cwd,
            env={
                "HOME": str(self.venv.parent),
                "PATH": f"{self.venv / 'bin'}:{os.environ['PATH']}",
                "NO_COLOR": "1",
                **(env or {}),
            },
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Build the wheel and install it. Only a release fetches the dependencies."""
    folder = tmp_path_factory.mktemp("packaging")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    site = next(venv.glob("lib/python*/site-packages"))
    # A path in a .pth file is searched, but the .pth files there, such as the checkout's own, are not read.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    add_pytest(site)  # the sandbox shows only the environment itself, so pytest must be in it
    pip = [sys.executable, "-m", "pip", "--python", str(venv / "bin" / "python"), "install"]
    options = ["--quiet", "--no-deps", "--no-index", "--no-compile", "--force-reinstall"]
    subprocess.run([*pip, *options, str(wheel)], check=True, capture_output=True)
    return Installed(wheel=wheel, venv=venv)

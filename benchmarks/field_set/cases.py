"""A case in a folder of its own: the package with its bug, and an environment as developers have one."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from field_set.cache import Cache
from field_set.packages import Package

__all__ = [
    "Suite",
    "case_folder",
    "create_environment",
    "failing_tests",
    "fill_folder",
    "run_suite",
    "suite_environ",
]

NOT_LOADED = ("__pycache__", ".pytest_cache", ".hypothesis", ".benchmarks")
COUNTS = re.compile(r"(\d+) (passed|failed|errors?)\b")
INTERRUPTED = 2
CODES_OF_A_SUITE = (0, 1, INTERRUPTED)
"""Exit codes of pytest: all passed, some failed, interrupted (such as by a file that cannot be imported)."""


WATCHER = """
import os


def pytest_runtest_logreport(report):
    if report.failed:
        with open(os.environ["FIELD_FAILING"], "a") as noted:
            noted.write(repr(report.nodeid) + "\\n")
"""
"""A plugin that names each failing test. Pytest's own counts are of reports: a test with three failing
subtests, or one that fails and cannot be taken down, is more than one of those."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """How a suite ended outside any sandbox. It did not run if it took too long or pytest itself failed."""

    passed: int
    failing: int
    ran: bool
    interrupted: bool = False
    """Whether a file could not be imported, so that pytest counts files, and runs no test."""

    @property
    def passes(self) -> bool:
        """Return whether tests ran and none failed."""
        return self.ran and not self.failing and self.passed > 0


@contextmanager
def case_folder(package: Package, cache: Cache, files: Mapping[str, str]) -> Iterator[Path]:
    """Create a temporary folder with the package, in which these files replace its own."""
    (cache.folder / "cases").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.folder / "cases", prefix=f"{package.name}-") as folder:
        root = Path(folder) / package.name
        fill_folder(root, package, cache, files)
        yield root


def fill_folder(root: Path, package: Package, cache: Cache, files: Mapping[str, str]) -> None:
    """Copy the package into a folder, with these files instead of its own and an environment beside it."""
    shutil.copytree(cache.tree(package), root, ignore=shutil.ignore_patterns(*NOT_LOADED))
    create_environment(package, cache, root)
    for path, text in files.items():
        (root / path).write_text(text, "utf-8", newline="")


def create_environment(package: Package, cache: Cache, root: Path) -> None:
    """Create the shared environment from hard links, and the one file that an editable install would add."""
    shared = cache.environment("suites")
    shutil.copytree(
        shared, root / ".venv", symlinks=True, copy_function=os.link, ignore=shutil.ignore_patterns("pip*")
    )
    if package.source_root:
        (packages,) = (root / ".venv" / "lib").glob("python3.*/site-packages")
        (packages / "editable.pth").write_text(f"{root / package.source_root}\n")


def suite_environ(root: Path) -> dict[str, str]:
    """Return the variables of a shell with the environment active, without keys and settings of the caller."""
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TZ", "TMPDIR") if name in os.environ}
    path = f"{root / '.venv' / 'bin'}:{os.environ.get('PATH', os.defpath)}"
    return {**kept, "PATH": path, "HOME": str(root.parent), "PYTHONDONTWRITEBYTECODE": "1"}


def failing_tests(package: Package, root: Path, seconds: float) -> int:
    """Run the package's own command, and return how many tests fail in it, each counted once."""
    with tempfile.TemporaryDirectory(dir=root.parent) as folder:
        (Path(folder) / "field_watcher.py").write_text(WATCHER, "utf-8")
        noted = Path(folder) / "failing"
        noted.touch()
        given = {"PYTHONPATH": folder, "FIELD_FAILING": str(noted), "PYTEST_ADDOPTS": "-p field_watcher"}
        run_suite(package, root, seconds, given)
        return len(set(noted.read_text("utf-8").splitlines()))


def run_suite(
    package: Package, root: Path, seconds: float, variables: Mapping[str, str] | None = None
) -> Suite:
    """Run the package's own command without Suture; only the given variables are added."""
    command = [*shlex.split(package.test), "-p", "no:cacheprovider"]
    command[0] = str(root / ".venv" / "bin" / "python")
    try:
        ended = subprocess.run(
            command,
            cwd=root,
            env={**suite_environ(root), **(variables or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Suite(passed=0, failing=0, ran=False)
    lines = ended.stdout.strip().splitlines()
    counts = {name.rstrip("s"): int(n) for n, name in COUNTS.findall(lines[-1] if lines else "")}
    failing = counts.get("failed", 0) + counts.get("error", 0)
    ran = ended.returncode in CODES_OF_A_SUITE and bool(counts) and bool(failing) == bool(ended.returncode)
    interrupted = ended.returncode == INTERRUPTED
    return Suite(passed=counts.get("passed", 0), failing=failing, ran=ran, interrupted=interrupted)

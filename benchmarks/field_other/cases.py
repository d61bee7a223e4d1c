"""A case in a folder of its own: the package with its bug, and what its tests need beside it."""

from __future__ import annotations

import json
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

from field_other.fetching import Store
from field_other.packages import OtherPackage

__all__ = ["Suite", "case_folder", "run_suite", "suite_environ"]

FAILED: Mapping[str, re.Pattern[str]] = {
    "Jest": re.compile(r"^Tests:\s+(\d+) failed", re.MULTILINE),
    "Vitest": re.compile(r"^\s+Tests\s+(\d+) failed", re.MULTILINE),
}
"""Where a runner reports the number of failed tests; any other suite counts as one test, as in Suture."""
FAILED_OF_NODE = re.compile(r"^\s*failureType: '(?!subtestsFailed)", re.MULTILINE)
"""node's own total also counts tests that failed only because of their subtests."""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, kw_only=True)
class Suite:
    """How a suite ended outside any sandbox: failing tests, `None` if it did not end or compile."""

    failing: int | None
    stderr_tail: str = ""


@contextmanager
def case_folder(package: OtherPackage, store: Store, files: Mapping[str, str]) -> Iterator[Path]:
    """Create a temporary folder with the package, in which these files replace its own."""
    cases = store.cache.folder / "cases"
    cases.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cases, prefix=f"{package.folder_name}-") as folder:
        root = Path(folder) / package.folder_name
        shutil.copytree(store.tree(package), root)
        modules = store.modules(package)
        if modules is not None:
            shutil.copytree(modules, root / "node_modules", symlinks=True, copy_function=os.link)
        for path, text in {**package.added, **files}.items():
            (root / path).write_text(text, "utf-8", newline="")
        yield root


def suite_environ(root: Path) -> dict[str, str]:
    """Return the variables of a shell, without keys and settings of the caller."""
    kept = {
        name: os.environ[name] for name in ("LANG", "LC_ALL", "TZ", "TMPDIR", "PATH") if name in os.environ
    }
    return {**kept, "HOME": str(root.parent), "CI": "true", "GOPROXY": "off", "GOFLAGS": "-p=2"}


def run_suite(package: OtherPackage, root: Path, seconds: float) -> Suite:
    """Run the package's own command without Suture."""
    command = shlex.split(package.test)
    if package.language == "go":
        command.append("-json")
    # Compiled parts of Go's library are the same for every case.
    environ = {**suite_environ(root), "GOCACHE": str(root.parent.parent / "go-build")}
    if package.runner == "node:test":
        environ["NODE_OPTIONS"] = "--test-reporter=tap"
    process = subprocess.Popen(
        command,
        cwd=root,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return Suite(failing=None, stderr_tail="no end")
    said = COLOUR.sub("", out + err)
    if process.returncode == 0:
        return Suite(failing=0)
    return Suite(failing=_failing(package, said), stderr_tail=said[-300:])


def _failing(package: OtherPackage, said: str) -> int | None:
    if package.language == "go":
        return _failing_in_go(said)
    if package.runner == "node:test":
        return max(1, len(FAILED_OF_NODE.findall(said)))
    pattern = FAILED.get(package.runner)
    counts = [int(count) for count in pattern.findall(said)] if pattern else []
    return max([1, *counts])


def _failing_in_go(said: str) -> int | None:
    """Return the failing tests without those that only summarise others; `None` if something did not compile."""
    ended: dict[tuple[str, str], str] = {}
    for line in said.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            if line.startswith("FAIL") and "failed]" in line:
                return None
            continue
        if "failed]" in str(event.get("Output", "")):
            return None
        test = str(event.get("Test", ""))
        if test and event.get("Action") in ("run", "pass", "fail", "skip"):
            ended[event["Package"], test] = event["Action"]
    failing = [key for key, how in ended.items() if how in ("run", "fail")]
    leaves = [
        (package, test)
        for package, test in failing
        if not any(other == package and name.startswith(f"{test}/") for other, name in failing)
    ]
    return len(leaves) or None

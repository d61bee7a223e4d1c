"""What is shipped beside the code: the manual page, the extras, the hook for pre-commit."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import yaml
from packaging.requirements import Requirement

from pages.man_page import man_page
from requirements import Require
from suture.interfaces.cli.app import SECTIONS

ROOT = Path(__file__).parents[2]
NEVER = {"torch", "triton", "tensorflow", "jax"}
"""What no extra may bring: gigabytes, and which build fits is the machine's matter."""


def test_the_page_has_every_command_and_is_well_formed(require: Require) -> None:
    page = man_page()
    for command in (name for section in SECTIONS.values() for name in section):
        assert f".SS suture {command}".replace("-", "\\-") in page
    mandoc = shutil.which("mandoc")
    require("mandoc", mandoc is not None, "no program 'mandoc'")
    lint = [str(mandoc), "-T", "lint", "-W", "error", str(ROOT / "docs" / "suture.1")]
    done = subprocess.run(lint, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def brought_by(extra: str, project: str = "suture") -> Iterator[str]:
    """Every package that an extra brings, and those that they bring, as far as they are installed."""
    seen: set[tuple[str, str]] = set()
    waiting = [(project, extra)]
    while waiting:
        if (at := waiting.pop()) in seen:
            continue
        seen.add(at)
        yield at[0]
        try:
            needs = requires(at[0]) or []
        except PackageNotFoundError:
            continue
        for need in map(Requirement, needs):
            if need.marker is None or need.marker.evaluate({"extra": at[1]}):
                waiting += [(need.name.lower(), part) for part in ("", *need.extras)]


def test_the_extra_all_is_every_extra_and_never_brings_torch() -> None:
    by_extra: dict[str, set[str]] = {}
    for need in map(Requirement, requires("suture") or []):
        extra = str(need.marker).partition('extra == "')[2].rstrip('"')
        by_extra.setdefault(extra, set()).add(f"{need.name}{need.specifier}")
    assert by_extra.pop("all") == set().union(*(by_extra[name] for name in by_extra if name))
    found = set(brought_by("all"))
    assert {"langgraph", "xllamacpp", "transformers", "ray"} <= found
    assert not NEVER & found
    for lock in (ROOT / "constraints").iterdir():
        locked = {line.partition("==")[0] for line in lock.read_text().splitlines()}
        assert not NEVER & locked
        assert not [name for name in locked if name.startswith("nvidia-")]


def test_the_walk_over_requirements_sees_what_an_extra_of_an_extra_brings() -> None:
    assert "uvicorn" in set(brought_by("serve"))
    assert "uvicorn" not in set(brought_by(""))


def test_the_hook_is_one_that_pre_commit_takes(require: Require) -> None:
    path = ROOT / ".pre-commit-hooks.yaml"
    for hook in yaml.safe_load(path.read_text()):
        assert hook["entry"].split()[:2] == ["suture", "heal"]
    pre_commit = shutil.which("pre-commit", path=str(Path(sys.executable).parent))
    require("pre-commit", pre_commit is not None, "no program 'pre-commit'; .ci/run installs it")
    subprocess.run([str(pre_commit), "validate-manifest", str(path)], check=True, capture_output=True)

"""The files beside the code: the manual page, the extras and the pre-commit hook."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import yaml
from packaging.requirements import Requirement

from pages.man_page import man_page
from requirements import Require
from suture.interfaces.cli.app import SECTIONS

ROOT = Path(__file__).parents[2]
FORBIDDEN_PACKAGES = {"torch", "triton", "tensorflow", "jax"}
"""Packages that no extra may install: they are gigabytes large, and the right build depends on the machine."""

NAMES_OF_THE_PACKAGE = re.compile(r"""(?:\bversion|\brequires)\("(suture[\w-]*)"\)|["'](suture[\w-]*)\[""")
NAMES_OF_THE_REPOSITORY = re.compile(r"(?:uses: |github\.com/)([\w-]+/suture\b[\w-]*)")


def test_package_and_repository_have_the_names_of_pyproject_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [
        ROOT / path for path in listed.stdout.split("\0") if path.endswith((".md", ".py", ".toml", ".yml"))
    ]
    texts = {path: path.read_text() for path in files if path.is_file()}
    packages = {
        (path, "".join(names)) for path in texts for names in NAMES_OF_THE_PACKAGE.findall(texts[path])
    }
    repositories = {(path, name) for path in texts for name in NAMES_OF_THE_REPOSITORY.findall(texts[path])}

    assert {path for path, name in packages if name != project["name"]} == set()
    repository = project["urls"]["Repository"].removeprefix("https://github.com/")
    assert {path for path, name in repositories if name != repository} == set()
    assert packages
    assert repositories


def test_the_manual_page_has_every_command_and_is_valid(require: Require) -> None:
    page = man_page()
    for command in (name for section in SECTIONS.values() for name in section):
        assert f".SS suture {command}".replace("-", "\\-") in page
    mandoc = shutil.which("mandoc")
    require("mandoc", mandoc is not None, "no program 'mandoc'")
    lint = [str(mandoc), "-T", "lint", "-W", "error", str(ROOT / "docs" / "suture.1")]
    completed = subprocess.run(lint, capture_output=True, text=True, check=False)

    assert (completed.returncode, completed.stdout) == (0, "")


def list_extra_packages(extra: str, project: str = "suture") -> Iterator[str]:
    """Yield the packages of an extra and, as far as they are installed, their requirements."""
    seen: set[tuple[str, str]] = set()
    waiting = [(project, extra)]
    while waiting:
        if (current := waiting.pop()) in seen:
            continue
        seen.add(current)
        yield current[0]
        try:
            needs = requires(current[0]) or []
        except PackageNotFoundError:
            continue
        for need in map(Requirement, needs):
            if need.marker is None or need.marker.evaluate({"extra": current[1]}):
                waiting += [(need.name.lower(), extra_of_need) for extra_of_need in ("", *need.extras)]


def test_the_extra_all_contains_every_extra_but_not_torch() -> None:
    by_extra: dict[str, set[str]] = {}
    for need in map(Requirement, requires("suture") or []):
        extra = str(need.marker).partition('extra == "')[2].rstrip('"')
        by_extra.setdefault(extra, set()).add(f"{need.name}{need.specifier}")

    assert by_extra.pop("all") == set().union(*(by_extra[name] for name in by_extra if name))
    packages = set(list_extra_packages("all"))
    assert {"langgraph", "xllamacpp", "transformers", "ray"} <= packages
    assert not FORBIDDEN_PACKAGES & packages
    for lock in (ROOT / "constraints").iterdir():
        locked = {line.partition("==")[0] for line in lock.read_text().splitlines()}
        assert not FORBIDDEN_PACKAGES & locked
        assert not [name for name in locked if name.startswith("nvidia-")]


def test_packages_of_nested_extras_are_listed() -> None:
    assert "uvicorn" in set(list_extra_packages("serve"))
    assert "uvicorn" not in set(list_extra_packages(""))


def test_pre_commit_accepts_the_hook(require: Require) -> None:
    path = ROOT / ".pre-commit-hooks.yaml"
    entries = {hook["id"]: hook["entry"].split()[:2] for hook in yaml.safe_load(path.read_text())}
    assert entries == {"suture-heal": ["suture", "heal"], "suture-judge": ["suture", "judge"]}
    pre_commit = shutil.which("pre-commit", path=str(Path(sys.executable).parent))
    require("pre-commit", pre_commit is not None, "no program 'pre-commit'; .ci/run installs it")
    subprocess.run([str(pre_commit), "validate-manifest", str(path)], check=True, capture_output=True)

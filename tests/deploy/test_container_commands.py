"""Suture in a container: the commands of docs/sandbox.md, development containers, and what an image is built from."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import suture
from project_files import write_files
from requirements import Require
from sandbox.engines import CONFIGURATION, podman_host
from suture.errors import SandboxUnavailable
from suture.sandbox.container.container_spec import pack_image

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sandbox.md").read_text()
CONTAINERFILE = (ROOT / "Containerfile").read_text()
TEMPLATE = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]
DEVELOPMENT = (ROOT / ".devcontainer" / "devcontainer.json").read_text()

IMAGE = "localhost/suture-command-test"
BROKEN = "def double(n):\n    return n + 2\n"
TEST = "from shop import double\n\n\ndef test_double():\n    assert double(5) == 10\n    assert double(7) == 14\n"


def find_command(start: str) -> str:
    """Return the one command of the page that starts with these words."""
    lines = PAGE.replace("\\\n", "").splitlines()
    [command] = [line for line in lines if line.startswith(start)]
    return command


def find_security_options(words: list[str]) -> set[str]:
    """Return the values of `--security-opt`, which follow it or are joined to it by an equals sign."""
    return set(re.findall(r"--security-opt[ =](\S+)", " ".join(words)))


def parse_jsonc(text: str) -> dict[str, Any]:
    """Return a JSON document whose comments have lines of their own."""
    content: dict[str, Any] = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    return content


@pytest.mark.parametrize("text", [DEVELOPMENT, TEMPLATE], ids=["our own", "of a user"])
def test_a_development_container_has_what_the_documented_command_has(text: str) -> None:
    container = parse_jsonc(text)
    documented = find_security_options(shlex.split(find_command("docker run")))
    assert len(documented) == 3
    assert find_security_options(container["runArgs"]) == documented
    python, release = re.findall(
        r"^ARG PYTHON_IMAGE=.*/python:(3\.\d+)[.\d]*-slim-(\w+)$", CONTAINERFILE, re.M
    )[0]
    assert container["image"].endswith(f"/python:{python}-{release}")


def test_our_own_development_container_makes_the_environment_of_the_makefile() -> None:
    command = parse_jsonc(DEVELOPMENT)["postCreateCommand"].split()
    assert command[0] == "make"
    assert re.search(rf"^{command[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_the_documented_build_names_a_file_and_a_stage_that_exist() -> None:
    words = shlex.split(find_command("docker build"))
    assert (ROOT / words[words.index("-f") + 1]).is_file()
    assert f" AS {words[words.index('--target') + 1]}\n" in CONTAINERFILE


def test_an_image_is_built_from_nothing_that_the_engine_ignores() -> None:
    rules = (ROOT / ".containerignore").read_text().splitlines()
    allowed = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", CONTAINERFILE, re.MULTILINE)
    sources = {source for copy in copies for source in copy.split()}
    assert "constraints" in sources
    assert rules[0] == "*"
    assert {source for source in sources if not {source, source.partition("/")[0]} & allowed} == set()


@pytest.mark.heavy
def test_the_documented_command_heals_the_mounted_folder(require: Require, tmp_path: Path) -> None:
    """The image has no files of its own here, so that no registry is needed: those of this machine are mounted."""
    try:
        podman_host()
    except SandboxUnavailable as fault:
        require("container", False, str(fault))
    project = write_files(tmp_path / "project", {"shop.py": BROKEN, "test_shop.py": TEST})
    (tmp_path / "image.tar").write_bytes(pack_image())
    (tmp_path / "containers.conf").write_text(CONFIGURATION)
    words = shlex.split(find_command("docker run").replace("$PWD", str(project)))
    end = words.index("suture")
    options = [word.replace("$(id -u):$(id -g)", f"{os.getuid()}:{os.getgid()}") for word in words[2:end]]
    options.remove("-it")  # there is no terminal
    for folder in {"/usr", sys.prefix, sys.base_prefix, str(Path(suture.__file__).parents[1])}:
        options += ["-v", f"{folder}:{folder}:ro"]
    entrypoint = ["--entrypoint", str(Path(sys.executable).parent / "suture"), IMAGE]

    def run_podman(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "CONTAINERS_CONF": str(tmp_path / "containers.conf")}
        return subprocess.run(
            ["podman", *arguments], env=environment, capture_output=True, text=True, timeout=200, check=False
        )

    assert run_podman("import", str(tmp_path / "image.tar"), IMAGE).returncode == 0
    ended = run_podman("run", *options, *entrypoint, *words[end + 1 :])
    run_podman("rmi", IMAGE)

    assert ended.returncode == 0, ended.stderr
    assert (project / "shop.py").read_text() == BROKEN.replace("+", "*")

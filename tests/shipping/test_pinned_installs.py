"""What the action, the images and the workflows install is pinned: packages by hash, images by version."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALLERS = (
    ROOT / "action.yml",
    ROOT / "Containerfile",
    *sorted((ROOT / ".github" / "workflows").glob("*.yml")),
)
IMAGE_USERS = (
    ROOT / "Containerfile",
    ROOT / "compose.yaml",
    *(ROOT / "templates").glob("*.yml"),
    *(ROOT / "docs").glob("*.md"),
)
LOCKS = sorted((ROOT / "constraints").glob("*.txt"))
OWN_CODE = ('"$OWN"', "/src", "dist/*.whl", '"$INSTALL"')
"""What is no package of the index: this repository, the wheel under test, and what a user names."""
IMAGE = re.compile(r"(?:image:|default:|_IMAGE=|_IMAGE: \")\s*((?:[\w.-]+/)*(?:python|ollama|pgvector):\S+)")


def list_installs(path: Path) -> list[str]:
    """Return the arguments of every `pip install` in a file, of which `-r LOCK` must exist."""
    return re.findall(r"\bpip install ([^\n&\\]+)", path.read_text())


@pytest.mark.parametrize("path", INSTALLERS, ids=lambda path: path.name)
def test_packages_are_installed_by_hash(path: Path) -> None:
    for arguments in list_installs(path):
        words = arguments.split()
        if words[-1] in OWN_CODE:
            continue
        assert "--require-hashes" in words, arguments
        assert (ROOT / "constraints" / Path(words[-1].strip('"')).name).is_file(), arguments


@pytest.mark.parametrize("path", [ROOT / "action.yml", ROOT / "Containerfile"], ids=lambda path: path.name)
def test_own_code_brings_no_other_packages_along(path: Path) -> None:
    own = [arguments for arguments in list_installs(path) if arguments.split()[-1] in ('"$OWN"', "/src")]
    assert own
    for arguments in own:
        assert {"--no-deps", "--no-build-isolation"} <= set(arguments.split())


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_line_of_a_lock_has_a_version_and_a_hash(lock: Path) -> None:
    requirements = re.sub(r"\\\n\s*", "", lock.read_text()).splitlines()
    assert requirements
    for requirement in requirements:
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==\S+ ", requirement), requirement
        assert "--hash=sha256:" in requirement


def test_locks_agree_on_the_version_of_a_package() -> None:
    versions: dict[tuple[str, str], set[str]] = {}
    for lock in LOCKS:
        for name, version, marker in re.findall(r"^(\S+)==(\S+)(.*?) \\$", lock.read_text(), re.MULTILINE):
            versions.setdefault((name, marker), set()).add(version)
    assert {key: found for key, found in versions.items() if len(found) > 1} == {}


@pytest.mark.parametrize("path", IMAGE_USERS, ids=lambda path: path.name)
def test_images_have_a_full_version(path: Path) -> None:
    text = path.read_text()
    assert ":latest" not in text
    for image in IMAGE.findall(text):
        tag = image.rpartition(":")[2]
        assert re.search(r"\d+\.\d+\.\d+", tag), image

"""A certificate covers sources: compiled files that would run instead of them refute it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from judge.conftest import PYTHON
from suture.api import verify
from suture.core.records import Task, content_hash
from suture.core.settings import Settings
from suture.judge.certificates import ReplayedClaim
from suture.judge.certificates.certificate import (
    Certificate,
    render_certificate,
    seal_certificate,
    sha256_hex,
)
from suture.judge.certificates.static_checks import ClaimRefuted, check_links, check_project_files
from suture.sandbox import BubblewrapSandbox

SOURCES = {
    "shop/__init__.py": b"",
    "shop/prices.py": b"def cheapest(prices):\n    return max(prices)\n",
    "tests/test_prices.py": b"",
}
REPLACING = (
    "shop/__pycache__/prices.cpython-311.pyc",
    "shop/__pycache__/anything",
    "shop/prices.pyc",
    "shop/prices.pyo",
    "shop/prices.so",
    "shop/prices.cpython-311-x86_64-linux-gnu.so",
    "shop/prices.abi3.so",
    "shop/prices.pyd",
    "shop/__init__.cpython-311-x86_64-linux-gnu.so",
    "shop.so",
    "json.so",
    "tests/pytest.abi3.so",
    "sitecustomize.so",
)
DECIDING = (
    *REPLACING,
    "sitecustomize.py",
    "lib/usercustomize.py",
    "lib/more.pth",
    "lib/modules.zip",
    "conftest.py",
    "tests/conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "tox.ini",
    "setup.cfg",
    "json.py",
)


def certify(files: Mapping[str, bytes], **changes: object) -> Certificate:
    hashes = {path: sha256_hex(content) for path, content in files.items()}
    facts = {
        "task": Task(statement="", kind="heal", test_command=("python", "-m", "pytest")),
        "project": hashes,
        "project_hash": content_hash(hashes),
        "diff": "",
        "result": {},
        "evidence": "nonce",
        "after": {},
    }
    return seal_certificate(Certificate(**facts | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("path", REPLACING)
def test_a_compiled_file_in_the_certified_project_refutes_the_certificate(path: str) -> None:
    files = {**SOURCES, path: b"\0"}
    with pytest.raises(ClaimRefuted) as refuted:
        check_project_files(certify(files), files, PYTHON)
    assert refuted.value.name == "project"
    assert path in refuted.value.detail


@pytest.mark.parametrize("path", REPLACING)
def test_a_compiled_file_in_the_certified_result_refutes_the_certificate(path: str) -> None:
    with pytest.raises(ClaimRefuted, match="in place of the sources"):
        check_project_files(certify(SOURCES, result={path: "0" * 64}), SOURCES, PYTHON)


def test_a_compiled_module_without_a_source_is_part_of_the_project() -> None:
    files = {**SOURCES, "shop/_fast.abi3.so": b"\0", "shop/json.abi3.so": b"\0"}
    assert check_project_files(certify(files), files, PYTHON) == files


@pytest.mark.parametrize("path", DECIDING)
def test_an_additional_file_that_could_change_the_result_is_named(path: str) -> None:
    with pytest.raises(ClaimRefuted) as refuted:
        check_project_files(certify(SOURCES), {**SOURCES, path: b""}, PYTHON)
    assert path in refuted.value.detail


async def replay_claims(
    folder: Path, sandbox: BubblewrapSandbox, settings: Settings, **changes: object
) -> list[ReplayedClaim]:
    certificate = folder.parent / "certificate.json"
    certificate.write_text(render_certificate(certify(SOURCES, **changes)))
    return [claim async for claim in verify(certificate, project=folder, settings=settings, sandbox=sandbox)]


async def test_ignored_files_that_could_change_the_result_are_named(
    tmp_path: Path, sandbox: BubblewrapSandbox, settings: Settings
) -> None:
    ignored_files = {
        "shop/__pycache__/prices.cpython-311.pyc": b"\0",
        "sitecustomize.py": b"",
        "notes.txt": b"",
    }
    root = tmp_path / "project"
    for path, content in {**SOURCES, **ignored_files}.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (root / ".git" / "info").mkdir(parents=True)
    (root / ".git" / "info" / "exclude").write_text("sitecustomize.py\nnotes.txt\n")

    first = (await replay_claims(root, sandbox, settings))[0]

    assert first.ok, first.detail
    assert "not certified: shop/__pycache__, sitecustomize.py" in first.detail
    assert "notes.txt" not in first.detail


@pytest.mark.parametrize(
    "links", [{"shop": "tests"}, {"conftest.py": "shop/prices.py"}, {"a/../b": "shop"}, {"more": "."}]
)
def test_a_link_that_no_project_has_refutes_the_certificate(links: Mapping[str, str]) -> None:
    with pytest.raises(ClaimRefuted, match="no links to folders of the project"):
        check_links(links, SOURCES)


async def test_a_certified_link_must_be_in_the_project_and_is_shown(
    tmp_path: Path, sandbox: BubblewrapSandbox, settings: Settings
) -> None:
    root = tmp_path / "project"
    for path, content in SOURCES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    task = Task(statement="", kind="heal", test_command=("python", "-m", "pytest"), links={"pytest": "shop"})
    (refuted,) = await replay_claims(root, sandbox, settings, task=task)
    assert (refuted.name, refuted.ok) == ("project", False)
    (root / "pytest").symlink_to("shop")
    first = (await replay_claims(root, sandbox, settings, task=task))[0]
    assert (first.ok, "links: pytest -> shop" in first.detail) == (True, True)

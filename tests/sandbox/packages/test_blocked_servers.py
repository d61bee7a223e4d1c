"""Packages that try to reach a server or run code while they are fetched do not succeed."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

import pytest

from requirements import Require
from sandbox.packages.local_index import (
    Index,
    build_source_archive,
    build_wheel,
    make_work_folder,
    publish_wheel,
)
from suture.project.safety.manifests import find_requested_packages
from suture.sandbox import discover_interpreter
from suture.sandbox.packages import NewProjectPackages, PackagesRefused
from suture.sandbox.packages.client import Client, run_client
from suture.sandbox.packages.installer import FETCHED
from suture.sandbox.packages.npm_installer import Npm
from suture.sandbox.packages.pip_installer import UNREACHABLE, Pip


async def test_a_wheel_is_fetched_locked_and_installed(index: Index, tmp_path: Path) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha"))
    pip = Pip()
    first, second = make_work_folder(tmp_path / "first"), make_work_folder(tmp_path / "second")
    lock = await pip.resolve(("alpha>=1",), first)
    digest = hashlib.sha256(index.pages["/files/alpha-1.0-py3-none-any.whl"]).hexdigest()

    assert lock == f"alpha==1.0 --hash=sha256:{digest}\n"

    (first.folder / FETCHED).rename(second.folder / FETCHED)
    await pip.install(("alpha>=1",), lock, second)
    assert (second.folder / "site" / "alpha.py").exists()


@pytest.mark.parametrize("sandboxed", [True, False])
async def test_a_wheels_url_requirement_is_never_built(index: Index, tmp_path: Path, sandboxed: bool) -> None:
    marker = tmp_path / "built"
    index.pages["/evil-1.0.tar.gz"] = build_source_archive(f"open({str(marker)!r}, 'w').close()\n")
    publish_wheel(index, "alpha", build_wheel("alpha", f"evil @ {index.url}/evil-1.0.tar.gz"))

    with pytest.raises(PackagesRefused):
        await Pip().resolve(("alpha",), make_work_folder(tmp_path / "place", sandboxed=sandboxed))
    assert "/simple/alpha/" in index.requested_paths
    assert not marker.exists()


async def test_a_node_packages_url_requirement_is_not_fetched(
    index: Index, tmp_path: Path, require: Require
) -> None:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    version = {
        "name": "alpha",
        "version": "1.0.0",
        "dist": {"tarball": f"{index.url}/npm/alpha.tgz", "integrity": "sha512-AAAA"},
        "dependencies": {"evil": f"{index.url}/evil.tgz"},
    }
    manifest = {"name": "alpha", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    index.pages["/npm/alpha"] = json.dumps(manifest).encode()

    with pytest.raises(PackagesRefused):
        await Npm().resolve(("dependencies alpha@1.0.0",), make_work_folder(tmp_path / "place"))
    assert "/npm/alpha" in index.requested_paths
    assert "/evil.tgz" not in index.requested_paths


@pytest.mark.parametrize(
    "line",
    [
        "flask===${OPENAI_API_KEY}",
        "flask # ok\n$HOME",
        " --hash=sha256:1 evil-package",
        "--only-binary=x evil-package",
        "-r other.txt",
        "evil @ http://127.0.0.1/evil.tar.gz",
        "./evil",
    ],
)
def test_an_unsupported_requirement_line_is_refused(line: str) -> None:
    with pytest.raises(PackagesRefused):
        Pip().parse_manifest(line)


@pytest.mark.parametrize(
    "text",
    [
        "flask\nrequets\n",
        " flask --hash=sha256:1\n",
        "flask \\\n  --hash=sha256:1 \\\n  --hash=sha256:2\nclick  # a remark\n",
        "Flask[async]>=2 ; python_version > '3'\n",
    ],
)
def test_every_fetched_package_is_shown_for_approval(text: str) -> None:
    fetched_names = {
        requirement.replace("[", " ").replace(">", " ").split()[0].split(";")[0]
        for requirement in Pip().parse_manifest(text)
    }

    assert fetched_names
    assert {name.lower() for name in fetched_names} == {
        requirement.name for requirement in find_requested_packages("requirements.txt", text)
    }


async def test_a_client_sees_no_keys_and_no_database_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "SUTURE_KEYS_OPENAI", "DATABASE_URL", "SUTURE_DATABASE_URL"):
        monkeypatch.setenv(name, "sk-secret")
    monkeypatch.setenv("PIP_PROXY", "kept")
    client = Client(name="python", argv=(), host_argv=(sys.executable,), unreachable=UNREACHABLE)
    work_folder = make_work_folder(tmp_path / "place", sandboxed=False)
    print_environment = (
        "import os, sys; sys.exit(' '.join(sorted(os.environ)) + ' '.join(os.environ.values()))"
    )

    with pytest.raises(PackagesRefused) as refused:
        await run_client(client, ["-c", print_environment], work_folder)
    assert "sk-secret" not in refused.value.reason

    print_proxy = "import os, sys; sys.exit(os.environ.get('PIP_PROXY', 'lost'))"
    with pytest.raises(PackagesRefused, match="kept"):
        await run_client(client, ["-c", print_proxy], work_folder)


def test_a_lock_is_valid_only_for_its_request(tmp_path: Path) -> None:
    interpreter = discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})
    lock = "evil==1.0 --hash=sha256:1\n"
    packages = NewProjectPackages(language="python", cache=tmp_path)
    version = ".".join(interpreter.version.split(".")[:2])
    packages._cache_folder(("evil",), lock, version).mkdir(parents=True)

    assert packages.is_known_lock(lock, {"requirements.txt": b"evil\n"}, interpreter)
    assert not packages.is_known_lock(lock, {"requirements.txt": b"flask\n"}, interpreter)
    assert not packages.is_known_lock(lock, {"requirements.txt": b"./evil\n"}, interpreter)
    assert not NewProjectPackages(language="go", cache=tmp_path).is_known_lock(lock, {}, interpreter)

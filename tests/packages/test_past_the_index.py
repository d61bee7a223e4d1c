"""What packages try on our side of the wall, while they are fetched: nothing of it happens."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from requirements import Require
from suture.packages import Packages, PackagesRefused
from suture.packages.from_npm import Npm
from suture.packages.from_pip import UNREACHABLE, Pip
from suture.packages.installer import run_client
from suture.safety.manifests import requested_in
from suture.sandbox import discover_interpreter

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


class Index:
    """An index of this machine: path -> content, and what was asked of it."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.asked: list[str] = []
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.asked.append(self.path)
                content = index.pages.get(self.path)
                self.send_response(200 if content is not None else 404)
                kind = "text/html" if "/simple/" in self.path else "application/json"
                self.send_header("content-type", kind)
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    opened = Index()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{opened.url}/simple")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("npm_config_registry", f"{opened.url}/npm/")
    yield opened
    opened.server.shutdown()
    opened.server.server_close()


def wheel(name: str, requires: str = "") -> bytes:
    """A wheel of one empty module."""
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        + (f"Requires-Dist: {requires}\n" if requires else ""),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)
    return packed.getvalue()


def source_archive(mark: Path) -> bytes:
    """A package that is built by its own code, which needs nothing and leaves a mark."""
    files = {
        "evil-1.0/pyproject.toml": "[build-system]\nrequires = []\n"
        'build-backend = "own"\nbackend-path = ["."]\n',
        "evil-1.0/own.py": f"open({str(mark)!r}, 'w').close()\n",
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


def offer(index: Index, name: str, content: bytes) -> None:
    file = f"{name}-1.0-py3-none-any.whl"
    index.pages[f"/simple/{name}/"] = f'<a href="/files/{file}">{file}</a>'.encode()
    index.pages[f"/files/{file}"] = content


async def test_a_plain_wheel_is_fetched_locked_and_laid_ready(index: Index, tmp_path: Path) -> None:
    offer(index, "alpha", wheel("alpha"))
    pip = Pip()
    lock = await pip.resolve(("alpha>=1",), tmp_path, PYTHON)
    digest = hashlib.sha256(index.pages["/files/alpha-1.0-py3-none-any.whl"]).hexdigest()
    assert lock == f"alpha==1.0 --hash=sha256:{digest}\n"
    await pip.install(("alpha>=1",), lock, tmp_path, PYTHON)
    assert (tmp_path / "site" / "alpha.py").exists()


async def test_what_a_wheel_requires_by_its_address_is_never_built(index: Index, tmp_path: Path) -> None:
    mark = tmp_path / "built"
    index.pages["/evil-1.0.tar.gz"] = source_archive(mark)
    offer(index, "alpha", wheel("alpha", f"evil @ {index.url}/evil-1.0.tar.gz"))
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(PackagesRefused):
        await Pip().resolve(("alpha",), place, PYTHON)
    assert "/simple/alpha/" in index.asked
    assert not mark.exists()


async def test_what_a_node_package_requires_by_its_address_is_not_asked_for(
    index: Index, tmp_path: Path, require: Require
) -> None:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    versions = {
        "name": "alpha",
        "version": "1.0.0",
        "dist": {"tarball": f"{index.url}/npm/alpha.tgz", "integrity": "sha512-AAAA"},
        "dependencies": {"evil": f"{index.url}/evil.tgz"},
    }
    page = {"name": "alpha", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": versions}}
    index.pages["/npm/alpha"] = json.dumps(page).encode()
    with pytest.raises(PackagesRefused):
        await Npm().resolve(("dependencies alpha@1.0.0",), tmp_path, PYTHON)
    assert "/npm/alpha" in index.asked
    assert "/evil.tgz" not in index.asked


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
def test_such_a_line_asks_for_nothing(line: str) -> None:
    with pytest.raises(PackagesRefused):
        Pip().wanted(line)


@pytest.mark.parametrize(
    "text",
    [
        "flask\nrequets\n",
        " flask --hash=sha256:1\n",
        "flask \\\n  --hash=sha256:1 \\\n  --hash=sha256:2\nclick  # a remark\n",
        "Flask[async]>=2 ; python_version > '3'\n",
    ],
)
def test_who_approves_sees_each_package_that_is_fetched(text: str) -> None:
    fetched = {one.replace("[", " ").replace(">", " ").split()[0].split(";")[0] for one in Pip().wanted(text)}
    assert fetched
    assert {name.lower() for name in fetched} == {one.name for one in requested_in("requirements.txt", text)}


async def test_a_client_sees_no_key_and_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "SUTURE_KEYS_OPENAI", "DATABASE_URL", "SUTURE_DATABASE_URL"):
        monkeypatch.setenv(name, "sk-secret")
    monkeypatch.setenv("PIP_PROXY", "kept")
    tell = "import os, sys; sys.exit(' '.join(sorted(os.environ)) + ' '.join(os.environ.values()))"
    with pytest.raises(PackagesRefused) as refused:
        await run_client("python", [sys.executable, "-c", tell], tmp_path, UNREACHABLE)
    assert "sk-secret" not in refused.value.why
    kept = "import os, sys; sys.exit(os.environ.get('PIP_PROXY', 'lost'))"
    with pytest.raises(PackagesRefused, match="kept"):
        await run_client("python", [sys.executable, "-c", kept], tmp_path, UNREACHABLE)


def test_a_lock_counts_only_for_what_was_asked(tmp_path: Path) -> None:
    interpreter = discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})
    lock = "evil==1.0 --hash=sha256:1\n"
    kept = Packages(language="python", cache=tmp_path)
    version = ".".join(interpreter.version.split(".")[:2])
    kept._place(("evil",), lock, version).mkdir(parents=True)
    assert kept.knows(lock, {"requirements.txt": b"evil\n"}, interpreter)
    assert not kept.knows(lock, {"requirements.txt": b"flask\n"}, interpreter)
    assert not kept.knows(lock, {"requirements.txt": b"./evil\n"}, interpreter)
    assert not Packages(language="go", cache=tmp_path).knows(lock, {}, interpreter)

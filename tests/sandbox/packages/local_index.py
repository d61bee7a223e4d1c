"""A local package index, and packages that are built for it on the spot."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import sys
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from suture.sandbox.packages.installer import WorkFolder

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


class Index:
    """An index of this machine: path -> content, path -> where it leads instead, and what was asked of it."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.leads: dict[str, str] = {}
        self.asked: list[str] = []
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.asked.append(self.path)
                if self.path in index.leads:
                    self.send_response(302)
                    self.send_header("location", index.leads[self.path])
                    self.end_headers()
                    return
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


def place_in(folder: Path, *, sandboxed: bool = True) -> WorkFolder:
    folder.mkdir()
    return WorkFolder(folder=folder, python=PYTHON, sandboxed=sandboxed)


def wheel(name: str, requires: str = "", version: str = "1.0", code: str = "") -> bytes:
    """A wheel of one module."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
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


def offer(index: Index, name: str, content: bytes, version: str = "1.0") -> None:
    file = f"{name}-{version}-py3-none-any.whl"
    page = f"/simple/{name}/"
    index.pages[page] = index.pages.get(page, b"") + f'<a href="/files/{file}">{file}</a>'.encode()
    index.pages[f"/files/{file}"] = content


def offer_node(index: Index, name: str, code: str, version: str = "1.0.0", **needs: str) -> None:
    """A package of npm's of one CommonJS module; `needs` is name=range."""
    package = {"name": name, "version": version, "main": "index.js", "dependencies": needs}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, text in {"package.json": json.dumps(package), "index.js": code}.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    content = packed.getvalue()
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
    at = f"/npm/{name}-{version}.tgz"
    page = json.loads(index.pages.get(f"/npm/{name}", b'{"versions": {}}'))
    page["name"], page["dist-tags"] = name, {"latest": version}
    page["versions"][version] = {
        **package,
        "dist": {"tarball": index.url + at, "integrity": f"sha512-{digest}"},
    }
    index.pages[f"/npm/{name}"] = json.dumps(page).encode()
    index.pages[at] = content

"""A local package index, and functions that build packages and publish them on it."""

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
    """An HTTP server that serves as a package index.

    Attributes:
        pages: The content of each path.
        redirects: The address that a path redirects to instead.
        requested_paths: The paths that clients have requested, in order.
    """

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.requested_paths: list[str] = []
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.requested_paths.append(self.path)
                if self.path in index.redirects:
                    self.send_response(302)
                    self.send_header("location", index.redirects[self.path])
                    self.end_headers()
                    return
                content = index.pages.get(self.path)
                self.send_response(200 if content is not None else 404)
                kind = "text/html" if "/simple/" in self.path else "application/json"
                self.send_header("content-type", kind)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(content or b"")

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def make_work_folder(folder: Path, *, sandboxed: bool = True) -> WorkFolder:
    """Create an empty folder in which an installer resolves and installs packages."""
    folder.mkdir()
    return WorkFolder(folder=folder, python=PYTHON, sandboxed=sandboxed)


def build_wheel(name: str, requires: str = "", version: str = "1.0", code: str = "") -> bytes:
    """Return a wheel of one module."""
    dist_info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": code,
        f"{dist_info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + (f"Requires-Dist: {requires}\n" if requires else ""),
        f"{dist_info}/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{dist_info}/RECORD"))
    wheel_bytes = io.BytesIO()
    with zipfile.ZipFile(wheel_bytes, "w") as archive:
        for path, text in {**files, f"{dist_info}/RECORD": record}.items():
            archive.writestr(path, text)
    return wheel_bytes.getvalue()


def build_source_archive(code: str) -> bytes:
    """Return a source distribution whose own build back end is this code."""
    files = {
        "evil-1.0/pyproject.toml": "[build-system]\nrequires = []\n"
        'build-backend = "own"\nbackend-path = ["."]\n',
        "evil-1.0/own.py": code,
    }
    archive_bytes = io.BytesIO()
    with tarfile.open(fileobj=archive_bytes, mode="w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return archive_bytes.getvalue()


def publish_wheel(index: Index, name: str, content: bytes, version: str = "1.0") -> None:
    """Add a wheel to the index and to its project's page."""
    file = f"{name}-{version}-py3-none-any.whl"
    page = f"/simple/{name}/"
    link = f"/files/{file}#sha256={hashlib.sha256(content).hexdigest()}"
    index.pages[page] = index.pages.get(page, b"") + f'<a href="{link}">{file}</a>'.encode()
    index.pages[f"/files/{file}"] = content


def publish_npm_package(
    index: Index, name: str, code: str, version: str = "1.0.0", *, postinstall: str = "", **dependencies: str
) -> None:
    """Publish an npm package of one CommonJS module; `dependencies` maps a name to a version range."""
    package: dict[str, object] = {"name": name, "version": version, "main": "index.js"}
    package["dependencies"] = dependencies
    if postinstall:
        package |= {"scripts": {"postinstall": postinstall}, "hasInstallScript": True}
    archive_bytes = io.BytesIO()
    with tarfile.open(fileobj=archive_bytes, mode="w:gz") as archive:
        for path, text in {"package.json": json.dumps(package), "index.js": code}.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    content = archive_bytes.getvalue()
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
    tarball_path = f"/npm/{name}-{version}.tgz"
    page = json.loads(index.pages.get(f"/npm/{name}", b'{"versions": {}}'))
    page["name"], page["dist-tags"] = name, {"latest": version}
    page["versions"][version] = {
        **package,
        "dist": {"tarball": index.url + tarball_path, "integrity": f"sha512-{digest}"},
    }
    index.pages[f"/npm/{name}"] = json.dumps(page).encode()
    index.pages[tarball_path] = content

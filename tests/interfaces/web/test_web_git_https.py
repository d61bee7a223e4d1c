"""A repository served over HTTPS with the operator's own certificate authority is cloned and healed."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from interfaces.web.real_server import Server
from interfaces.web.test_web_git import git, make_repository
from requirements import Require
from suture.errors import UsageError
from suture.project.workspace.cloning import CloneLimits, clone

LIMITS = CloneLimits(files=100, total_bytes=2**20)


class GitBackend(BaseHTTPRequestHandler):
    """Passes requests to `git http-backend`, as a web server does with CGI."""

    environ: ClassVar[dict[str, str]] = {}

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        environ = {
            **self.environ,
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("content-type") or "",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding") or "",
            "GIT_PROTOCOL": self.headers.get("git-protocol") or "",
        }
        output = subprocess.run(
            ["git", "http-backend"], input=body, env=environ, capture_output=True, check=True
        ).stdout
        head, _, content = output.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in {**fields, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory, require: Require) -> Path:
    """Create a self-signed certificate of 127.0.0.1 with its key."""
    require("openssl", shutil.which("openssl") is not None, "no openssl on PATH: apt-get install openssl")
    path = tmp_path_factory.mktemp("authority") / "own.pem"
    key_options = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    name_options = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    subprocess.run(
        ["openssl", "req", "-x509", *key_options, *name_options, "-keyout", str(path), "-out", f"{path}.crt"],
        check=True,
        capture_output=True,
    )
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


@contextmanager
def run_git_server(repositories: Path, certificate: Path) -> Iterator[str]:
    """Run a server of git repositories over HTTPS, and yield its address."""
    GitBackend.environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(repositories),
        "GIT_PROJECT_ROOT": str(repositories),
        "GIT_HTTP_EXPORT_ALL": "1",
    }
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with ThreadingHTTPServer(("127.0.0.1", 0), GitBackend) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client without trust hangs up
        # The handshake runs in the thread of the connection, not in the accepting thread.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.heavy
def test_an_https_repository_is_healed_only_with_a_trusted_certificate(
    folder: Path, certificate: Path
) -> None:
    """Without the certificate in the settings, cloning the same repository fails."""
    repository_folder = make_repository(folder / "made")
    git(folder, "clone", "-q", "--bare", str(repository_folder), str(folder / "repositories" / "shop.git"))
    with run_git_server(folder / "repositories", certificate) as url:
        with pytest.raises(UsageError, match=r"cannot be fetched.*certificate"):
            clone(f"{url}/shop.git", folder / "here", LIMITS, private=["127.0.0.1"])

        options = ("--set", f"serve.git={url}/", "--set", "serve.git_private=127.0.0.1")
        environ = {"GIT_SSL_CAINFO": f"{certificate}.crt"}
        with Server(folder, "--model", "none", *options, environ=environ) as server:
            run = server.run(kind="heal", git=f"{url}/shop.git", ref="main")
            description = server.wait_for_state(run, "ended", "refused")
            assert description["outcome"] == "healed", description
            assert "-    return sum(prices) + 1" in server.get(f"/v1/runs/{run}/diff").text

            missing = server.wait_for_state(
                server.run(kind="heal", git=f"{url}/other.git"), "ended", "refused"
            )
            assert missing["state"] == "refused", missing
            assert "cannot be fetched" in str(missing), missing

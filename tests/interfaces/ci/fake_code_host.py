"""A local server that implements GitHub's and GitLab's REST interfaces and records each call."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "a-token-of-the-tests"  # nobody's
NEEDED = {
    "git/blobs": {"content", "encoding"},
    "git/trees": {"base_tree", "tree"},
    "git/commits": {"message", "tree", "parents"},
    "git/refs": {"ref", "sha"},
    "pulls": {"title", "head", "base", "body", "draft"},
    "pulls/7/reviews": {"commit_id", "event", "body", "comments"},
    "issues/7/comments": {"body"},
    "repository/commits": {"branch", "start_sha", "commit_message", "actions"},
    "merge_requests": {"source_branch", "target_branch", "title", "description"},
    "merge_requests/7/notes": {"body"},
}
"""Path below the repository -> what its document says that a POST holds; other paths are not there."""


@dataclass
class CodeHost:
    """What the server was asked, and what it has.

    Attributes:
        url: Its address.
        calls: Method, path below the repository, and body, in their order.
        lines_in_diff: Whether suggestions fall on lines of the pull request; where not, they are refused.
        refs: Names of branches.
        bodies: Comments, notes and reviews.
    """

    url: str = ""
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    lines_in_diff: bool = True
    refs: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)

    def posts(self) -> list[str]:
        """The paths of what changed something."""
        return [path for method, path, _ in self.calls if method != "GET"]

    def body(self, path: str) -> Any:
        """The last body that was sent to a path."""
        return next(body for method, one, body in reversed(self.calls) if (method, one) == ("POST", path))

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """What the documents say that this is answered with."""
        found = re.fullmatch(r"/(?:repos/ada/shop|projects/42)/([^?]*)(?:\?.*)?", path)
        if not found:
            return 404, {"message": "Not Found"}
        name = found[1]
        self.calls.append((method, name, body))
        if method == "GET":
            return 200, self._listed(name)
        if name not in NEEDED or not NEEDED[name] <= body.keys():
            return 422, {"message": f"Validation Failed: {name}"}
        if name == "git/refs":
            self.refs.append(body["ref"])
        if name == "repository/commits":
            self.refs.append(body["branch"])
        if name == "pulls/7/reviews" and not self.lines_in_diff:
            return 422, {"message": "Unprocessable Entity", "errors": ["Line could not be resolved"]}
        if "body" in body and name != "pulls":
            self.bodies.append(body["body"])
        sha = hashlib.sha1(json.dumps(body).encode(), usedforsecurity=False).hexdigest()
        return 201, {
            "sha": sha,
            "id": 1,
            "html_url": f"{self.url}/{name}/1",
            "web_url": f"{self.url}/{name}/1",
        }

    def _listed(self, name: str) -> list[dict[str, str]]:
        if name.startswith("git/matching-refs/heads/"):
            stem = f"refs/{name.removeprefix('git/matching-refs/')}"
            return [{"ref": ref} for ref in self.refs if ref.startswith(stem)]
        if name == "repository/branches":
            return [{"name": ref} for ref in self.refs]
        return [{"body": body} for body in self.bodies] if "pulls" not in name else []


@contextmanager
def serving() -> Iterator[CodeHost]:
    """The server, at a free port of this machine."""
    host = CodeHost()

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            content = self.rfile.read(length)
            allowed = (self.headers.get("Authorization"), self.headers.get("PRIVATE-TOKEN"))
            known = f"Bearer {TOKEN}" in allowed or TOKEN in allowed
            status, said = (
                host.answer(self.command, self.path, json.loads(content or b"{}"))
                if known
                else (401, {"message": "Bad credentials"})
            )
            answer = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = _do

        def log_message(self, *about: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        host.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield host
        finally:
            server.shutdown()
            thread.join()

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

TOKEN = "a-token-of-the-tests"  # not a real token
REQUIRED_FIELDS = {
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
"""Path below the repository -> the fields that its documentation requires of a POST."""


@dataclass
class CodeHost:
    """The recorded calls and the state of a code host.

    Attributes:
        url: The address of the server.
        calls: The method, the path below the repository, and the body of each call, in order.
        lines_in_diff: Whether suggestions are on lines of the pull request; otherwise they are refused.
        refs: The names of the branches.
        bodies: The texts of comments, notes and reviews.
    """

    url: str = ""
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    lines_in_diff: bool = True
    refs: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)

    def posts(self) -> list[str]:
        """Return the paths of all calls that change something."""
        return [path for method, path, _ in self.calls if method != "GET"]

    def body(self, path: str) -> Any:
        """Return the last body that was posted to a path."""
        return next(
            body
            for method, called_path, body in reversed(self.calls)
            if (method, called_path) == ("POST", path)
        )

    def respond(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Record a call, and return the status and the content that the documentation specifies."""
        match = re.fullmatch(r"/(?:repos/ada/shop|projects/42)/([^?]*)(?:\?.*)?", path)
        if not match:
            return 404, {"message": "Not Found"}
        name = match[1]
        self.calls.append((method, name, body))
        if method == "GET":
            return 200, self._list_items(name)
        if name not in REQUIRED_FIELDS or not REQUIRED_FIELDS[name] <= body.keys():
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

    def _list_items(self, name: str) -> list[dict[str, str]]:
        if name.startswith("git/matching-refs/heads/"):
            stem = f"refs/{name.removeprefix('git/matching-refs/')}"
            return [{"ref": ref} for ref in self.refs if ref.startswith(stem)]
        if name == "repository/branches":
            return [{"name": ref} for ref in self.refs]
        return [{"body": body} for body in self.bodies] if "pulls" not in name else []


@contextmanager
def run_code_host() -> Iterator[CodeHost]:
    """Run the server at a free port of this machine."""
    host = CodeHost()

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            request_body = self.rfile.read(length)
            credentials = (self.headers.get("Authorization"), self.headers.get("PRIVATE-TOKEN"))
            is_authorized = f"Bearer {TOKEN}" in credentials or TOKEN in credentials
            status, content = (
                host.respond(self.command, self.path, json.loads(request_body or b"{}"))
                if is_authorized
                else (401, {"message": "Bad credentials"})
            )
            response_body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(response_body)))
            self.end_headers()
            self.wfile.write(response_body)

        do_GET = do_POST = _do

        def log_message(self, *arguments: object) -> None:
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

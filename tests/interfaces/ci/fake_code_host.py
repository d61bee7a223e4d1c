"""A local server that implements GitHub's and GitLab's REST interfaces, keeps their state and records each call."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "a-token-of-the-tests"  # not a real token
PROGRAM = {"login": "github-actions[bot]", "type": "Bot"}
"""The author of what the token writes."""
PROGRAM_ID = 99
"""The id of that author on GitLab."""
REQUIRED_FIELDS = {
    r"POST git/blobs": {"content", "encoding"},
    r"POST git/trees": {"base_tree", "tree"},
    r"POST git/commits": {"message", "tree", "parents"},
    r"POST git/refs": {"ref", "sha"},
    r"PATCH git/refs/heads/.+": {"sha"},
    r"DELETE git/refs/heads/.+": set[str](),
    r"POST pulls": {"title", "head", "base"},
    r"POST pulls/7/reviews": {"commit_id", "event", "body", "comments"},
    r"POST issues/\d+/comments": {"body"},
    r"PATCH issues/comments/\d+": {"body"},
    r"POST issues/comments/\d+/reactions": {"content"},
    r"POST issues": {"title"},
    r"PATCH issues/\d+": set[str](),
    r"POST check-runs": {"name", "head_sha"},
    r"POST repository/commits": {"branch", "start_sha", "commit_message", "actions"},
    r"POST merge_requests": {"source_branch", "target_branch", "title"},
    r"POST merge_requests/7/notes": {"body"},
    r"PUT merge_requests/7/notes/\d+": {"body"},
}
"""Method and path below the repository -> the fields that the documentation requires."""
Answer = tuple[int, Any]


@dataclass
class CodeHost:
    """The recorded calls and the state of a code host with one pull request, number 7.

    Attributes:
        url: The address of the server.
        calls: The method, the path below the repository, and the body of each call, in order.
        refusals: Statuses and headers with which the next calls are refused.
        refused_paths: Path -> status with which each POST to it is refused.
        token_may_check: Whether the token may create check runs, which needs a GitHub App.
        pull: The pull request as GitHub describes it.
        patches: Path -> patch of the pull request's files.
        permissions: Login -> permission of the people who know the repository.
        drafts: The pull requests that were created, as GitHub describes them.
        refs: Name -> commit of each branch.
        commits: Hash -> message and parents.
        comments: Comments and notes, by their id; those of issues have the issue's number.
        issues: Issues by their number.
        reviews: The texts of the reviews.
        checks: The check runs.
        reactions: The id of a comment and the reaction to it.
    """

    url: str = ""
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    refusals: list[tuple[int, Mapping[str, str]]] = field(default_factory=list)
    refused_paths: dict[str, int] = field(default_factory=dict)
    token_may_check: bool = True
    pull: dict[str, Any] = field(default_factory=dict)
    patches: dict[str, str] = field(default_factory=dict)
    permissions: dict[str, str] = field(default_factory=lambda: {"ada": "write"})
    drafts: list[dict[str, Any]] = field(default_factory=list)
    refs: dict[str, str] = field(default_factory=dict)
    commits: dict[str, dict[str, Any]] = field(default_factory=dict)
    comments: dict[int, dict[str, Any]] = field(default_factory=dict)
    issues: dict[int, dict[str, Any]] = field(default_factory=dict)
    reviews: list[str] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    reactions: list[tuple[int, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def posts(self) -> list[str]:
        """Return the paths of all calls that change something."""
        return [path for method, path, _ in self.calls if method != "GET"]

    def body(self, path: str) -> Any:
        """Return the last body that was sent to a path."""
        return next(body for _, called, body in reversed(self.calls) if called == path and body)

    def add_pull(self, commit: str, branch: str, repository: str = "ada/shop", base: str = "0" * 40) -> None:
        """Add the pull request; its branch ends with a commit."""
        head = {"sha": commit, "ref": branch, "repo": {"full_name": repository}}
        self.pull = {"number": 7, "state": "open", "head": head, "base": {"sha": base}}
        self.refs[f"refs/heads/{branch}"] = commit

    def add_comment(self, text: str, login: str, kind: str = "User", issue: int = 7) -> int:
        """Add a comment of somebody, and return its id."""
        number = len(self.comments) + 1
        self.comments[number] = {
            "id": number,
            "body": text,
            "user": {"login": login, "type": kind},
            "author": {"id": PROGRAM_ID if login == PROGRAM["login"] else 1},
            "issue": issue,
            "html_url": f"{self.url}/comments/{number}",
        }
        return number

    def respond(self, method: str, target: str, body: Any) -> tuple[int, Mapping[str, str], Any]:
        """Record a call, and return the status, headers and content that the documentation specifies."""
        url = urlsplit(target)
        if (method, url.path) == ("GET", "/user"):
            return 200, {}, {"id": PROGRAM_ID}
        match = re.fullmatch(r"/(?:repos/ada/shop|projects/42)/(.*)", url.path)
        if not match:
            return 404, {}, {"message": "Not Found"}
        name = unquote(match[1])
        with self._lock:  # a service changes its state by one request at a time
            self.calls.append((method, name, body))
            if self.refusals:
                return *self.refusals.pop(0), {"message": "not now"}
            if method == "POST" and name in self.refused_paths:
                return self.refused_paths[name], {}, {"message": "not here"}
            if method == "GET":
                query = {key: values[0] for key, values in parse_qs(url.query).items()}
                return 200, {}, self._read(name, query)
            required = [
                fields
                for pattern, fields in REQUIRED_FIELDS.items()
                if re.fullmatch(pattern, f"{method} {name}")
            ]
            if not required or not required[0] <= body.keys():
                return 422, {}, {"message": f"Validation Failed: {method} {name}"}
            status, content = self._write(method, name, body)
            return status, {}, content

    def _read(self, name: str, query: Mapping[str, str]) -> Any:
        if name == "pulls/7":
            return self.pull
        if match := re.fullmatch(r"collaborators/(.+)/permission", name):
            return {"permission": self.permissions.get(match[1], "read")}
        if match := re.fullmatch(r"git/commits/(\w+)", name):
            return {"sha": match[1], **self.commits.get(match[1], {"message": "", "parents": []})}
        if name == "pulls":
            return [pull for pull in self.drafts if f"ada:{pull['head']['ref']}" == query["head"]]
        entries = self._list(name)
        page, size = int(query.get("page", 1)), int(query.get("per_page", 30))
        return entries[(page - 1) * size : page * size]

    def _list(self, name: str) -> list[Any]:
        if name.startswith("git/matching-refs/"):
            stem = f"refs/{name.removeprefix('git/matching-refs/')}"
            return [{"ref": ref} for ref in self.refs if ref.startswith(stem)]
        if name == "repository/branches":
            return [{"name": ref.removeprefix("refs/heads/")} for ref in self.refs]
        if name == "pulls/7/files":
            return [{"filename": path, "patch": patch} for path, patch in self.patches.items()]
        if name == "pulls/7/reviews":
            return [{"body": body} for body in self.reviews]
        if name == "issues":
            return [issue for issue in self.issues.values() if issue["state"] == "open"]
        if name in ("issues/7/comments", "merge_requests/7/notes"):
            return [comment for comment in self.comments.values() if comment["issue"] == 7]
        raise AssertionError(f"no list of {name}")

    def _write(self, method: str, name: str, body: Any) -> Answer:
        number = int((re.findall(r"/(\d+)", name) or ["0"])[-1])
        address = f"{self.url}/{name}/1"
        created = {"sha": hash_of(body), "id": 1, "html_url": address, "web_url": address}
        parts = name.split("/")
        if parts[0] in ("git", "repository"):
            return self._write_git(method, name, body, created)
        match parts:
            case ["issues", "comments", _, "reactions"]:
                self.reactions.append((number, body["content"]))
            case ["issues", "comments", _] | ["merge_requests", _, "notes", _]:
                self.comments[number]["body"] = body["body"]
                return 200, self.comments[number]
            case ["issues", _, "comments"] | ["merge_requests", _, "notes"]:
                comment = self.add_comment(body["body"], PROGRAM["login"], PROGRAM["type"], issue=number)
                return 201, self.comments[comment]
            case ["pulls", _, "reviews"]:
                return self._review(body, created)
            case ["issues", *_]:
                return self._write_issue(number, body, address)
            case ["pulls"]:
                head = {"ref": body["head"], "sha": self.refs[f"refs/heads/{body['head']}"]}
                self.drafts.append({**created, "state": "open", "head": head})
            case ["check-runs"] if not self.token_may_check:
                return 403, {"message": "You must authenticate via a GitHub App."}
            case ["check-runs"]:
                self.checks.append(body)
        return 201, created

    def _write_git(self, method: str, name: str, body: Any, created: Mapping[str, Any]) -> Answer:
        if name == "git/commits":
            sha = hash_of([body, len(self.commits)])
            parents = [{"sha": parent} for parent in body["parents"]]
            self.commits[sha] = {"message": body["message"], "parents": parents}
            return 201, {"sha": sha}
        if method == "DELETE":
            return (422, {}) if self.refs.pop(name.removeprefix("git/"), None) is None else (200, {})
        if name.startswith("git/refs/"):
            return self._move_branch(name.removeprefix("git/"), body)
        if name == "git/refs" and body["ref"] in self.refs:
            return 422, {"message": "Reference already exists"}
        if name == "git/refs":
            self.refs[body["ref"]] = body["sha"]
        if name == "repository/commits":
            self.refs[f"refs/heads/{body['branch']}"] = hash_of(body)
        return 201, created

    def _write_issue(self, number: int, body: Any, address: str) -> Answer:
        number = number or len(self.issues) + 1
        issue = self.issues.setdefault(number, {"number": number, "state": "open", "html_url": address})
        issue |= body
        return 200, issue

    def _move_branch(self, ref: str, body: Any) -> Answer:
        """Move a branch as git does: without force only to a descendant of its head."""
        if ref not in self.refs:
            return 422, {"message": "Reference does not exist"}
        parents = [parent["sha"] for parent in self.commits.get(body["sha"], {"parents": []})["parents"]]
        if not body.get("force") and self.refs[ref] not in parents:
            return 422, {"message": "Update is not a fast forward"}
        self.refs[ref] = body["sha"]
        if self.pull and ref == f"refs/heads/{self.pull['head']['ref']}":
            self.pull["head"]["sha"] = body["sha"]
        return 200, {"ref": ref, "object": {"sha": body["sha"]}}

    def _review(self, body: Any, created: Mapping[str, Any]) -> Answer:
        """Accept a review whose comments are on lines of the pull request's diff."""
        for comment in body["comments"]:
            patch = self.patches.get(comment["path"], "")
            header = re.search(r"\+(\d+),(\d+) @@", patch)
            start, count = (int(header[1]), int(header[2])) if header else (0, 0)
            if not start <= comment.get("start_line", comment["line"]) <= comment["line"] < start + count:
                return 422, {"message": "Unprocessable Entity", "errors": ["Line could not be resolved"]}
        self.reviews.append(body["body"])
        return 200, created


def hash_of(value: Any) -> str:
    """Return a value's hash, in the form of a commit's."""
    return hashlib.sha1(json.dumps(value).encode(), usedforsecurity=False).hexdigest()


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
            status, headers, content = (
                host.respond(self.command, self.path, json.loads(request_body or b"{}"))
                if is_authorized
                else (401, {}, {"message": "Bad credentials"})
            )
            response_body = json.dumps(content).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Type": "application/json"}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(response_body)))
            self.end_headers()
            self.wfile.write(response_body)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _do

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

"""Git repositories are cloned only if the settings allow it, and nothing in them is run."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from interfaces.web.real_server import Server
from interfaces.web.uploaded_projects import BROKEN_PROJECT, write_project
from suture.errors import UsageError
from suture.interfaces.jobs.project_sources import require_allowed_git_url
from suture.project.workspace.cloning import CloneLimits, clone

LIMITS = CloneLimits(files=100, total_bytes=2**20)
ALLOWED_URLS = ("https://git.example.com/team/", "https://git.example.com:8443/one.git", "file:///srv/git")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", *arguments], cwd=folder, check=True
    )


def make_repository(folder: Path) -> Path:
    """Create a broken project whose branch `more` has a link, a filtered file and a large file."""
    write_project(folder, BROKEN_PROJECT)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "broken")
    git(folder, "checkout", "-q", "-b", "more")
    (folder / "passwd").symlink_to("/etc/passwd")
    (folder / ".gitattributes").write_text("*.py filter=evil\n")
    (folder / "large.txt").write_bytes(b"0" * 300_000)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "more")
    git(folder, "checkout", "-q", "main")
    return folder


@pytest.mark.parametrize(
    "url", ["https://git.example.com/team/a.git", "https://git.example.com:8443/one.git", "file:///srv/git/a"]
)
def test_a_git_url_that_the_settings_allow_is_accepted(url: str) -> None:
    require_allowed_git_url(url, "v1.0/fix-2", ALLOWED_URLS)


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.com/teams/a.git",
        "https://git.example.com/other/../team/a.git",
        "https://git.example.com/team/../other.git",
        "https://git.example.com/team/%2e%2e/other.git",
        "https://git.example.com:8443/one.git.evil",
        "https://git.example.com.evil.example/team/a",
        "https://me:secret@git.example.com/team/a.git",
        "https://git.example.com/team/a.git?x=1",
        "https://git.example.com/team/a.git#x",
        "https://git.example.com/team/a b",
        "https://git.example.com/team/a\n",
        "HTTPS://git.example.com/team/a",
        "http://git.example.com/team/a",
        "ssh://git.example.com/team/a",
        "git@git.example.com:team/a",
        "ext::sh -c id",
        "file:///etc",
        "/srv/git/a",
        "--upload-pack=id",
        "",
    ],
)
def test_any_other_git_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError) as refusal:
        require_allowed_git_url(url, "", ALLOWED_URLS)
    assert not url or url not in str(refusal.value)


@pytest.mark.parametrize("ref", ["-x", "--upload-pack=id", "a..b", "a b", "a\n", "@{1}"])
def test_a_ref_that_is_not_a_plain_name_is_refused(ref: str) -> None:
    with pytest.raises(UsageError, match="is not a valid branch or tag"):
        require_allowed_git_url("https://git.example.com/team/a", ref, ALLOWED_URLS)


def test_a_clone_contains_plain_files_and_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"file://{make_repository(tmp_path / 'made')}"
    hooks = tmp_path / "templates" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "post-checkout").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (hooks / "post-checkout").chmod(0o755)
    configuration = tmp_path / "gitconfig"
    configuration.write_text(
        f"[init]\n\ttemplateDir = {hooks.parent}\n"
        f'[filter "evil"]\n\tsmudge = touch {tmp_path}/ran\n\trequired = true\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(configuration))

    clone(url, tmp_path / "here", LIMITS, ref="more")

    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "here" / ".git").exists()
    assert not (tmp_path / "here" / "passwd").is_symlink()
    assert (tmp_path / "here" / "passwd").read_text() == "/etc/passwd"
    assert (tmp_path / "here" / "cart.py").read_text() == BROKEN_PROJECT["cart.py"]


@pytest.mark.parametrize(
    ("limits", "ref", "message"),
    [
        (CloneLimits(files=4, total_bytes=2**20), "more", "more than 4 files"),
        (CloneLimits(files=100, total_bytes=200_000), "more", "more than 0 MiB"),
        (LIMITS, "nowhere", "cannot be fetched"),
    ],
)
def test_a_clone_that_is_too_large_or_missing_is_refused(
    tmp_path: Path, limits: CloneLimits, ref: str, message: str
) -> None:
    url = f"file://{make_repository(tmp_path / 'made')}"
    with pytest.raises(UsageError, match=message):
        clone(url, tmp_path / "clones" / "here", limits, ref=ref)
    assert list((tmp_path / "clones").iterdir()) == []


@contextmanager
def run_http_server(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """Run an HTTP server on this machine, and yield its port."""
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def run_redirecting_server(to: str) -> Iterator[tuple[int, list[str]]]:
    """Run a server that redirects every request, and yield its port and the requested paths."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(302)
            self.send_header("location", to)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    with run_http_server(Handler) as port:
        yield port, paths


def test_a_clone_does_not_send_passwords_of_the_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text("machine localhost login operator password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    authorizations: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            authorizations.append(self.headers["authorization"])
            self.send_response(401)
            self.send_header("www-authenticate", "Basic realm=x")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    with run_http_server(Handler) as port, pytest.raises(UsageError):
        clone(f"http://localhost:{port}/a.git", tmp_path / "here", LIMITS, private=["localhost"])
    assert authorizations
    assert {*authorizations} == {None}


def test_a_private_address_must_be_listed_and_must_not_redirect(
    tmp_path: Path,
) -> None:
    with run_redirecting_server("http://127.0.0.1:9/elsewhere.git/info/refs") as (port, paths):
        for host in ("localhost", "127.0.0.1", "0.0.0.0"):
            with pytest.raises(UsageError, match="has a private IP address"):
                clone(f"http://{host}:{port}/a.git", tmp_path / "here", LIMITS)
        assert paths == []
        with pytest.raises(UsageError, match="cannot be fetched"):
            clone(f"http://localhost:{port}/a.git", tmp_path / "here", LIMITS, private=["localhost"])
        assert len(paths) == 1
    assert not (tmp_path / "here").exists()


@pytest.mark.heavy
def test_a_git_repository_is_healed(folder: Path) -> None:
    repository_folder = make_repository(folder / "made")
    with Server(folder, "--model", "none", "--set", f"serve.git=file://{folder}") as server:
        run = server.run(kind="heal", git=f"file://{repository_folder}", money=1.5)
        description = server.wait_for_state(run, "ended", "refused")
        assert description["outcome"] == "healed", description
        assert "-    return sum(prices) + 1" in server.get(f"/v1/runs/{run}/diff").text

        for options, status in (
            ({"git": "https://me:secret@git.example.com/a"}, 403),
            ({"git": f"file://{repository_folder}", "since": "HEAD~1"}, 400),
            ({"git": f"file://{repository_folder}", "archive": "0" * 64}, 400),
        ):
            refusal = server.post("/v1/runs", {"kind": "heal", **options})
            assert refusal.status_code == status, refusal.text
            assert "secret" not in refusal.text
        assert server.get("/v1/projects").json()["git"] == [f"file://{folder}"]
        assert "secret" not in server.read_stderr()

"""Repositories that callers name are cloned only if the settings allow it, and nothing in them is run."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from interfaces.web.real_server import Server
from interfaces.web.uploaded_projects import BROKEN, laid
from suture.errors import UsageError
from suture.interfaces.jobs.project_sources import require_allowed_git_url
from suture.project.workspace.cloning import CloneLimits, clone

LIMITS = CloneLimits(files=100, total_bytes=2**20)
ALLOWED = ("https://git.example.com/team/", "https://git.example.com:8443/one.git", "file:///srv/git")


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", *words], cwd=folder, check=True
    )


def repository(folder: Path) -> Path:
    """A broken project; its branch `more` has a link, a file that git is to filter and one that is large."""
    laid(folder, BROKEN)
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
def test_what_the_settings_allow_may_be_asked_for(url: str) -> None:
    require_allowed_git_url(url, "v1.0/fix-2", ALLOWED)


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
def test_any_other_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        require_allowed_git_url(url, "", ALLOWED)
    assert not url or url not in str(refused.value)


@pytest.mark.parametrize("ref", ["-x", "--upload-pack=id", "a..b", "a b", "a\n", "@{1}"])
def test_a_ref_is_a_plain_name(ref: str) -> None:
    with pytest.raises(UsageError, match="is not a valid branch or tag"):
        require_allowed_git_url("https://git.example.com/team/a", ref, ALLOWED)


def test_a_clone_is_plain_files_and_nothing_of_it_has_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"file://{repository(tmp_path / 'made')}"
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
    assert (tmp_path / "here" / "cart.py").read_text() == BROKEN["cart.py"]


@pytest.mark.parametrize(
    ("limits", "ref", "says"),
    [
        (CloneLimits(files=4, total_bytes=2**20), "more", "more than 4 files"),
        (CloneLimits(files=100, total_bytes=200_000), "more", "more than 0 MiB"),
        (LIMITS, "nowhere", "cannot be fetched"),
    ],
)
def test_too_much_and_nothing_are_refused(tmp_path: Path, limits: CloneLimits, ref: str, says: str) -> None:
    url = f"file://{repository(tmp_path / 'made')}"
    with pytest.raises(UsageError, match=says):
        clone(url, tmp_path / "clones" / "here", limits, ref=ref)
    assert list((tmp_path / "clones").iterdir()) == []


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """A server of this machine; its port."""
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def redirecting(to: str) -> Iterator[tuple[int, list[str]]]:
    """A server that sends whoever asks it elsewhere."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(302)
            self.send_header("location", to)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    with listening(Handler) as port:
        yield port, asked


def test_the_operators_passwords_are_not_lent_to_whoever_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text("machine localhost login operator password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    shown: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown.append(self.headers["authorization"])
            self.send_response(401)
            self.send_header("www-authenticate", "Basic realm=x")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    with listening(Handler) as port, pytest.raises(UsageError):
        clone(f"http://localhost:{port}/a.git", tmp_path / "here", LIMITS, private=["localhost"])
    assert shown
    assert {*shown} == {None}


def test_an_address_of_this_machine_is_not_asked_unless_it_is_listed_and_leads_nowhere_else(
    tmp_path: Path,
) -> None:
    with redirecting("http://127.0.0.1:9/elsewhere.git/info/refs") as (port, asked):
        for host in ("localhost", "127.0.0.1", "0.0.0.0"):
            with pytest.raises(UsageError, match="has a private IP address"):
                clone(f"http://{host}:{port}/a.git", tmp_path / "here", LIMITS)
        assert asked == []
        with pytest.raises(UsageError, match="cannot be fetched"):
            clone(f"http://localhost:{port}/a.git", tmp_path / "here", LIMITS, private=["localhost"])
        assert len(asked) == 1
    assert not (tmp_path / "here").exists()


@pytest.mark.heavy
def test_a_repository_is_healed(folder: Path) -> None:
    made = repository(folder / "made")
    with Server(folder, "--model", "none", "--set", f"serve.git=file://{folder}") as server:
        run = server.run(kind="heal", git=f"file://{made}", money=1.5)
        shown = server.until(run, "ended", "refused")
        assert shown["outcome"] == "healed", shown
        assert "-    return sum(prices) + 1" in server.get(f"/v1/runs/{run}/diff").text
        for asked, status in (
            ({"git": "https://me:secret@git.example.com/a"}, 403),
            ({"git": f"file://{made}", "since": "HEAD~1"}, 400),
            ({"git": f"file://{made}", "archive": "0" * 64}, 400),
        ):
            refused = server.post("/v1/runs", {"kind": "heal", **asked})
            assert refused.status_code == status, refused.text
            assert "secret" not in refused.text
        assert server.get("/v1/projects").json()["git"] == [f"file://{folder}"]
        assert "secret" not in server.words()

"""The hub is the first source; if it fails, the next source continues the download, and the user is told."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from faults import ERRORS, choose_error, fault_at, raise_error
from models.tiny_wheels import CONTENT, make_entry
from suture.errors import PrerequisiteError, SutureError
from suture.models.weights.download import pull_model
from suture.models.weights.weights_cache import HubFile, partial_path


class HubStub(ThreadingHTTPServer):
    """A hub with one file."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), HubHandler)
        self.content = CONTENT
        self.status: int | None = None
        self.obeys_ranges = True
        self.cut_at: int | None = None
        self.downloads: list[tuple[str, int]] = []
        self.authorizations: list[str | None] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""

    @property
    def file(self) -> HubFile:
        endpoint = f"http://127.0.0.1:{self.server_address[1]}"
        return HubFile(repo="us/tiny", filename="tiny.gguf", endpoint=endpoint)


class HubHandler(BaseHTTPRequestHandler):
    """Sends the file from the requested offset."""

    server: HubStub

    def do_GET(self) -> None:
        hub = self.server
        offset = int(self.headers["range"].removeprefix("bytes=").removesuffix("-"))
        hub.downloads.append((self.path, offset))
        hub.authorizations.append(self.headers["authorization"])
        body = hub.content[offset if hub.obeys_ranges else 0 :]
        self.send_response(hub.status or (206 if hub.obeys_ranges else 200))
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: hub.cut_at])

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubStub]:
    """A running hub."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with HubStub() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def leave_partial(cache: Path, content: bytes) -> None:
    """Write the partial file of an interrupted download."""
    path = partial_path(make_entry(), cache)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)


def test_the_file_comes_from_the_hub(hub: HubStub, tmp_path: Path) -> None:
    assert pull_model(make_entry(hub.file), tmp_path).read_bytes() == CONTENT
    assert hub.downloads == [("/us/tiny/resolve/main/tiny.gguf", 0)]


def test_the_token_of_the_settings_is_sent_to_the_hub(hub: HubStub, tmp_path: Path) -> None:
    pull_model(make_entry(hub.file), tmp_path, token="hf_hush")
    assert hub.authorizations == ["Bearer hf_hush"]


@pytest.mark.parametrize("obeys_ranges", [True, False])
def test_an_interrupted_download_is_continued(hub: HubStub, tmp_path: Path, obeys_ranges: bool) -> None:
    hub.obeys_ranges = obeys_ranges
    leave_partial(tmp_path, CONTENT[:1_234_567])
    assert pull_model(make_entry(hub.file), tmp_path).read_bytes() == CONTENT
    assert hub.downloads[0][1] == 1_234_567


def test_the_next_source_continues_the_download(hub: HubStub, tmp_path: Path) -> None:
    with HubStub() as second_hub:
        threading.Thread(target=second_hub.serve_forever, kwargs={"poll_interval": 0.01}).start()
        hub.cut_at = 1_100_000
        messages: list[str] = []
        path = pull_model(make_entry(hub.file, second_hub.file), tmp_path, say=messages.append)
        second_hub.shutdown()

    assert path.read_bytes() == CONTENT
    assert 0 < second_hub.downloads[0][1] <= 1_100_000
    assert [line for line in messages if line.startswith("not from")]


@pytest.mark.parametrize("status", [401, 404, 503])
def test_a_refusal_of_the_hub_is_reported(hub: HubStub, tmp_path: Path, status: int) -> None:
    hub.status = status
    with pytest.raises(PrerequisiteError, match=f"HTTP {status}"):
        pull_model(make_entry(hub.file), tmp_path)


def test_a_web_page_is_not_accepted_as_the_file(hub: HubStub, tmp_path: Path) -> None:
    hub.content = b"<html>please log in to this network"
    hub.obeys_ranges = False
    with pytest.raises(PrerequisiteError, match="another size"):
        pull_model(make_entry(hub.file), tmp_path)


def test_an_unreachable_hub_is_reported(tmp_path: Path) -> None:
    nowhere = HubFile(repo="us/tiny", filename="tiny.gguf", endpoint="http://127.0.0.1:9")
    with pytest.raises(PrerequisiteError, match="cannot be reached"):
        pull_model(make_entry(nowhere), tmp_path)


@pytest.mark.parametrize("seed", range(len(ERRORS)))
def test_after_a_fault_at_any_file_the_next_download_is_complete(
    hub: HubStub, tmp_path: Path, seed: int
) -> None:
    def pull(folder: str) -> Path:
        return pull_model(make_entry(hub.file), tmp_path / folder)

    with fault_at(-1, lambda: None, match=str(tmp_path)) as made:
        pull("none")
    assert len(made) > 5
    for step in range(len(made)):
        # The slash: the folder of step 1 is not that of step 10.
        fault = fault_at(step, raise_error(choose_error(step, seed)), match=f"{tmp_path / f'{step}'}/")
        with fault, contextlib.suppress(SutureError):
            pull(f"{step}")
        assert pull(f"{step}").read_bytes() == CONTENT
        assert not partial_path(make_entry(hub.file), tmp_path / f"{step}").exists()


def test_after_a_connection_closed_at_any_byte_the_next_download_continues(
    hub: HubStub, tmp_path: Path
) -> None:
    for cut_at in (0, 1, *range(300_000, len(CONTENT), 300_000), len(CONTENT) - 1):
        hub.cut_at, cache = cut_at, tmp_path / f"{cut_at}"
        with pytest.raises(PrerequisiteError, match="pull again: the download is continued"):
            pull_model(make_entry(hub.file), cache)
        hub.cut_at = None
        kept_bytes = partial_path(make_entry(hub.file), cache).stat().st_size
        assert pull_model(make_entry(hub.file), cache).read_bytes() == CONTENT
        assert hub.downloads[-1][1] == kept_bytes <= cut_at

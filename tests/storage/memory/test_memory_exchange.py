"""Memories pushed to and pulled from a data set, against a stub of the hub's HTTP interface."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from suture.errors import PrerequisiteError, StorageError, UsageError
from suture.storage.database.store import open_store
from suture.storage.memory import memory_exchange
from suture.storage.memory.memory_exchange import (
    HUB_FILE,
    export_lines,
    import_lines,
    pull_from_hub,
    push_to_hub,
)
from suture.storage.memory.memory_items import MemoryItem
from suture.storage.memory.memory_store import iter_items, store_items

TOKEN = "hf_" + "stubstubstub"
REPO = "team/memories"
COMMIT = "a" * 40


class FakeHub(BaseHTTPRequestHandler):
    """Answers the requests with which the hub's library writes and reads a small file."""

    files: ClassVar[dict[str, bytes]] = {}
    created: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        repository_url = f"http://{self.headers['host']}/datasets/{REPO}"
        length = int(self.headers.get("content-length", 0))
        body = self.rfile.read(length)
        if self.headers.get("authorization") != f"Bearer {TOKEN}":
            return self._send_json(401, {"error": "Invalid credentials"})
        if self.path == "/api/repos/create":
            self.created.append(json.loads(body))
            return self._send_json(200, {"url": repository_url, "name": REPO})
        if "/preupload/" in self.path:
            requested_files = json.loads(body)["files"]
            files = [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                for file in requested_files
            ]
            return self._send_json(200, {"files": files})
        if "/commit/" in self.path:
            for line in body.decode().splitlines():
                entry = json.loads(line)
                if entry["key"] == "file":
                    self.files[entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
            return self._send_json(
                200, {"commitUrl": f"{repository_url}/commit/{COMMIT}", "commitOid": COMMIT}
            )
        return self._send_json(404, {"error": self.path})

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2].partition("?")[0]
        if "/resolve/" not in self.path or name not in self.files:
            return self._send_json(404, {"error": "not found"})
        content = self.files[name]
        etag = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        self.send_response(200)
        for header, value in (
            ("ETag", f'"{etag}"'),
            ("X-Repo-Commit", COMMIT),
            ("Content-Length", len(content)),
        ):
            self.send_header(header, str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)
        return None

    do_HEAD = do_GET

    def _send_json(self, status: int, value: object) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Do not log requests."""


@pytest.fixture
def hub() -> Iterator[str]:
    """The address of the stub."""
    FakeHub.files, FakeHub.created = {}, []
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeHub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def make_lesson(text: str) -> MemoryItem:
    """Return a lesson with this text."""
    return MemoryItem(table="lessons", run_id="r", text=text, search_text=text)


def test_pushed_items_are_pulled_without_duplicates(hub: str, tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/one.db", tmp_path) as first_store:
        store_items(first_store, [make_lesson("check the ends"), make_lesson("read the message")])
        assert push_to_hub(first_store, REPO, token=TOKEN, endpoint=hub) == 2

    request = FakeHub.created[0]  # versions of the library use different fields

    assert request.get("private") is True or request.get("visibility") == "private"
    assert request["type"] == "dataset"
    assert TOKEN.encode() not in FakeHub.files[HUB_FILE]
    with open_store(f"sqlite:///{tmp_path}/two.db", tmp_path) as second_store:
        store_items(second_store, [make_lesson("check the ends")])
        pulled = pull_from_hub(second_store, REPO, token=TOKEN, endpoint=hub)
        assert (pulled.read, pulled.new) == (2, 1)
        assert {item.text for item in iter_items(second_store)} == {"check the ends", "read the message"}


def test_a_refusal_is_one_line_without_the_token(hub: str, tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/one.db", tmp_path) as store:
        with pytest.raises(StorageError) as refused:
            push_to_hub(store, REPO, token="hf_wrong", endpoint=hub)
        assert "hf_wrong" not in str(refused.value)
        with pytest.raises(StorageError, match="pull from"):
            pull_from_hub(store, REPO, token=TOKEN, endpoint=hub)
        with pytest.raises(PrerequisiteError, match="needs a token"):
            push_to_hub(store, REPO, token="", endpoint=hub)


def test_a_file_with_too_many_items_is_refused_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(f"sqlite:///{tmp_path}/one.db", tmp_path) as source:
        store_items(source, [make_lesson("check the ends"), make_lesson("read the message")])
        lines = list(export_lines(source))

    with open_store(f"sqlite:///{tmp_path}/two.db", tmp_path) as target:
        monkeypatch.setattr(memory_exchange, "MAX_ITEMS", 1)
        with pytest.raises(UsageError, match=r"'memory.jsonl' holds more than 1 memory items"):
            import_lines(target, lines, file_name="memory.jsonl")
        assert not list(iter_items(target))
        monkeypatch.setattr(memory_exchange, "MAX_ITEMS", 2)
        assert import_lines(target, lines, file_name="memory.jsonl").new == 2

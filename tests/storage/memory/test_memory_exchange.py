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


class Hub(BaseHTTPRequestHandler):
    """The requests of the hub's library for writing and reading a small file."""

    files: ClassVar[dict[str, bytes]] = {}
    created: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        here = f"http://{self.headers['host']}/datasets/{REPO}"
        length = int(self.headers.get("content-length", 0))
        body = self.rfile.read(length)
        if self.headers.get("authorization") != f"Bearer {TOKEN}":
            return self._say(401, {"error": "Invalid credentials"})
        if self.path == "/api/repos/create":
            self.created.append(json.loads(body))
            return self._say(200, {"url": here, "name": REPO})
        if "/preupload/" in self.path:
            asked = json.loads(body)["files"]
            files = [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False} for one in asked]
            return self._say(200, {"files": files})
        if "/commit/" in self.path:
            for line in body.decode().splitlines():
                said = json.loads(line)
                if said["key"] == "file":
                    self.files[said["value"]["path"]] = base64.b64decode(said["value"]["content"])
            return self._say(200, {"commitUrl": f"{here}/commit/{COMMIT}", "commitOid": COMMIT})
        return self._say(404, {"error": self.path})

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2].partition("?")[0]
        if "/resolve/" not in self.path or name not in self.files:
            return self._say(404, {"error": "not found"})
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

    def _say(self, status: int, said: object) -> None:
        content = json.dumps(said).encode()
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
    """The stub's address."""
    Hub.files, Hub.created = {}, []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def lesson(text: str) -> MemoryItem:
    return MemoryItem(table="lessons", run_id="r", text=text, search_text=text)


def test_pushed_items_are_pulled_without_duplicates(hub: str, tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/one.db", tmp_path) as here:
        store_items(here, [lesson("check the ends"), lesson("read the message")], None)
        assert push_to_hub(here, REPO, token=TOKEN, endpoint=hub) == 2
    made = Hub.created[0]  # the library's versions say it in two ways
    assert made.get("private") is True or made.get("visibility") == "private"
    assert made["type"] == "dataset"
    assert TOKEN.encode() not in Hub.files[HUB_FILE]
    with open_store(f"sqlite:///{tmp_path}/two.db", tmp_path) as there:
        store_items(there, [lesson("check the ends")], None)
        done = pull_from_hub(there, REPO, None, token=TOKEN, endpoint=hub)
        assert (done.read, done.new) == (2, 1)
        assert {item.text for item in iter_items(there)} == {"check the ends", "read the message"}


def test_a_refusal_is_one_line_without_the_token(hub: str, tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/one.db", tmp_path) as store:
        with pytest.raises(StorageError) as refused:
            push_to_hub(store, REPO, token="hf_wrong", endpoint=hub)
        assert "hf_wrong" not in str(refused.value)
        with pytest.raises(StorageError, match="pull from"):
            pull_from_hub(store, REPO, None, token=TOKEN, endpoint=hub)
        with pytest.raises(PrerequisiteError, match="needs a token"):
            push_to_hub(store, REPO, token="", endpoint=hub)


def test_a_file_with_too_many_items_is_refused_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(f"sqlite:///{tmp_path}/one.db", tmp_path) as source:
        store_items(source, [lesson("check the ends"), lesson("read the message")], None)
        lines = list(export_lines(source))
    with open_store(f"sqlite:///{tmp_path}/two.db", tmp_path) as target:
        monkeypatch.setattr(memory_exchange, "MAX_ITEMS", 1)
        with pytest.raises(UsageError, match=r"'memory.jsonl' holds more than 1 memory items"):
            import_lines(target, lines, None, file_name="memory.jsonl")
        assert not list(iter_items(target))
        monkeypatch.setattr(memory_exchange, "MAX_ITEMS", 2)
        assert import_lines(target, lines, None, file_name="memory.jsonl").new == 2

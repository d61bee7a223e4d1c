"""Embedders behind an address: OpenAI's protocol, and Ollama's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from suture.errors import ModelAuthError, ModelError
from suture.storage.memory.embedding.contract import unit_rows

if TYPE_CHECKING:
    from suture.storage.memory.embedding.contract import Vectors

BATCH = 64
MOST_CHARS = 8000
MOST_DIMENSIONS = 8192
BYTES_PER_NUMBER = 40
"""Of JSON, generously."""
FRAME_BYTES = 256 * 1024


class ServedEmbedder:
    """A model behind an address.

    Args:
        protocol: `openai` (`POST /embeddings`) or `ollama` (`POST /api/embed`).
        model: The model's name there.
        base_url: The address; with OpenAI's protocol up to `/v1`.
        key: Sent as a bearer token; empty where none is needed.
        timeout_s: The most seconds of one request.
        client: Another HTTP client of httpx, where not a new one.
    """

    def __init__(
        self,
        protocol: str,
        model: str,
        base_url: str,
        *,
        key: str = "",
        timeout_s: float = 30.0,
        client: Any = None,
    ) -> None:
        self._protocol, self._model, self._address = protocol, model, base_url.rstrip("/")
        self._key, self._timeout_s, self._client = key, timeout_s, client

    @property
    def identity(self) -> str:
        """The protocol and the model; the same model behind two addresses is the same."""
        return f"{self._protocol}:{self._model}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        import httpx
        import numpy as np

        rows: list[list[float]] = []
        client = self._client or httpx.Client(follow_redirects=False)
        try:
            for start in range(0, len(texts), BATCH):
                batch = [text[:MOST_CHARS] or " " for text in texts[start : start + BATCH]]
                rows += self._asked(client, batch)
        finally:
            if client is not self._client:
                client.close()
        if len({len(row) for row in rows}) > 1:
            raise ModelError(f"the embedder {self.identity!r} gives vectors of several lengths")
        return unit_rows(np.asarray(rows, dtype=np.float32).reshape(len(texts), -1))

    def _asked(self, client: Any, texts: list[str]) -> list[list[float]]:
        import httpx

        path = "/embeddings" if self._protocol == "openai" else "/api/embed"
        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        most = FRAME_BYTES + len(texts) * MOST_DIMENSIONS * BYTES_PER_NUMBER
        body = {"model": self._model, "input": texts}
        try:
            url = self._address + path
            with client.stream("POST", url, json=body, headers=headers, timeout=self._timeout_s) as answer:
                content = b""
                for piece in answer.iter_bytes():
                    content += piece
                    if len(content) > most:
                        raise ModelError(f"the embedder {self.identity!r} answers without end")
                status = answer.status_code
        except httpx.HTTPError as fault:
            raise ModelError(
                f"the embedder {self.identity!r} cannot be reached: {type(fault).__name__}",
                remedy="check memory.embedder and memory.base_url",
            ) from fault
        if status in (401, 403):
            raise ModelAuthError(f"the embedder {self.identity!r} refused the key (HTTP {status})")
        if status != 200:
            raise ModelError(f"the embedder {self.identity!r} answered HTTP {status}")
        return _rows(content, len(texts), self._protocol, self.identity)


def _rows(content: bytes, count: int, protocol: str, identity: str) -> list[list[float]]:
    try:
        said = json.loads(content)
        if protocol == "openai":
            rows = [one["embedding"] for one in sorted(said["data"], key=lambda one: one["index"])]
        else:
            rows = said["embeddings"]
        rows = [[float(number) for number in row] for row in rows]
    except (ValueError, KeyError, TypeError, RecursionError) as fault:
        raise ModelError(f"the embedder {identity!r} answered something else than vectors") from fault
    if len(rows) != count or not all(0 < len(row) <= MOST_DIMENSIONS for row in rows):
        raise ModelError(f"the embedder {identity!r} gave {len(rows)} vectors for {count} texts")
    return rows

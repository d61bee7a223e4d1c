"""The protocol of embedders, which make vectors of texts, and what all of them share."""

from __future__ import annotations

import contextlib
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from suture.core.settings import Settings
from suture.errors import ModelAuthError, ModelError, UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    """One row for each text, of length 1."""


class Embedder(Protocol):
    """Makes vectors of texts."""

    @property
    def identity(self) -> str:
        """Who makes them: vectors of two identities are never compared."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row of float32 for each text, of length 1; a text without a meaning has the zero vector.

        Raises:
            ModelError: A server failed.
            PrerequisiteError: What it needs is not here.
        """
        ...


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let numpy multiply in one thread meanwhile.

    Its threads wait for one another by spinning: on a machine that does other work too they took 13 times
    the CPU time for a short text.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield


def unit_rows(vectors: Vectors) -> Vectors:
    """The rows made of length 1; a zero row stays."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)


DIMENSIONS = 512
"""By taste; a memory's vector takes 2 KB."""
SIZES = (3, 4)
"""Letters of a piece."""
MOST_CHARS = 8000
WORD = re.compile(r"[a-z]+|\d+|[^\sa-z\d]")
HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


class HashedNgrams:
    """Words and pieces of three and four letters, counted at a place and with a sign by their hash.

    After Weinberger et al., Feature Hashing for Large Scale Multitask Learning (2009).
    """

    identity = f"hashed-ngrams:1:{DIMENSIONS}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        import numpy as np

        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for piece in _pieces(text[:MOST_CHARS]):
                drawn = zlib.crc32(piece.encode("utf-8", "surrogatepass"))
                row[drawn % DIMENSIONS] += 1.0 if drawn >> 31 else -1.0
        # A piece that comes up often says less each time.
        return unit_rows(np.sign(vectors) * np.sqrt(np.abs(vectors)))


def _pieces(text: str) -> Iterator[str]:
    for word in WORD.findall(HUMP.sub(" ", text).lower()):
        yield word
        padded = f"^{word}$"
        for size in SIZES:
            for start in range(len(padded) - size + 1):
                yield padded[start : start + size]


BATCH = 64
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


ADDRESSES = {"openai": "https://api.openai.com/v1", "ollama": "http://127.0.0.1:11434"}
NAMES = "hashed, minilm, openai:MODEL, ollama:MODEL or none"


def open_embedder(settings: Settings) -> Embedder | None:
    """The embedder that `memory.embedder` names; `None` where memories are found by their words alone.

    Raises:
        UsageError: It names none.
        PrerequisiteError: Its weights are not installed.
    """
    name = settings.memory.embedder
    provider, _, model = name.partition(":")
    if name == "none":
        return None
    if name == "minilm":
        from suture.storage.memory.minilm import MiniLm

        return MiniLm()
    if name == "hashed":
        return HashedNgrams()
    if provider in ADDRESSES and model:
        address = settings.memory.base_url or ADDRESSES[provider]
        key = settings.keys.openai if provider == "openai" else None
        return ServedEmbedder(provider, model, address, key=key.get_secret_value() if key else "")
    raise UsageError(f"memory.embedder names no embedder: {name!r}", remedy=f"one of {NAMES}")

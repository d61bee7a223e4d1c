"""Embedders: texts to vectors, by hashing, by the packaged MiniLM, or by a server.

Two texts are as similar as the dot product of their vectors. Vectors of different embedders cannot be
compared, so each is stored with its embedder's `identity`.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from suture.core.settings import Settings
from suture.errors import ModelAuthError, ModelError, UsageError
from suture.storage.memory.vectors import normalise_rows
from suture.storage.tuning import (
    HASHED_DIMENSIONS,
    JSON_BYTES_PER_NUMBER,
    MAX_EMBEDDED_CHARS,
    MAX_SERVED_DIMENSIONS,
)

if TYPE_CHECKING:
    from suture.storage.memory.vectors import Vectors


class Embedder(Protocol):
    """Computes vectors of texts."""

    @property
    def identity(self) -> str:
        """Return the identity; vectors of two identities are never compared."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one float32 unit vector per text; a text without content gets the zero vector.

        Raises:
            ModelError: A server failed.
            PrerequisiteError: A package or the weights are missing.
        """
        ...


NGRAM_SIZES = (3, 4)
"""Lengths of the letter n-grams."""
WORD = re.compile(r"[a-z]+|\d+|[^\sa-z\d]")
CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")


class HashedNgrams:
    """Words and letter n-grams, counted at a position and with a sign given by their hash.

    It needs no download. After Weinberger et al., Feature Hashing for Large Scale Multitask Learning (2009).
    """

    identity = f"hashed-ngrams:1:{HASHED_DIMENSIONS}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        import numpy as np

        vectors = np.zeros((len(texts), HASHED_DIMENSIONS), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for ngram in _ngrams(text[:MAX_EMBEDDED_CHARS]):
                hash_value = zlib.crc32(ngram.encode("utf-8", "surrogatepass"))
                # The highest bit gives the sign, so that n-grams at the same position cancel out on average.
                row[hash_value % HASHED_DIMENSIONS] += 1.0 if hash_value >> 31 else -1.0
        # The square root dampens n-grams that occur often.
        return normalise_rows(np.sign(vectors) * np.sqrt(np.abs(vectors)))


def _ngrams(text: str) -> Iterator[str]:
    """Yield each word and its letter n-grams, with marks at the beginning and end of the word."""
    for word in WORD.findall(CAMEL_CASE.sub(" ", text).lower()):
        yield word
        padded = f"^{word}$"
        for size in NGRAM_SIZES:
            for start in range(len(padded) - size + 1):
                yield padded[start : start + size]


BATCH = 64
"""Texts of one request. Chosen by judgement; not measured."""
FRAME_BYTES = 256 * 1024
"""Allowance for everything around the vectors in a response. Chosen by judgement; not measured."""


class ServedEmbedder:
    """An embedding model behind an HTTP address.

    Args:
        protocol: `openai` (`POST /embeddings`) or `ollama` (`POST /api/embed`).
        base_url: The address; with OpenAI's protocol up to `/v1`.
        key: Bearer token; empty if none is needed.
        timeout_s: Maximum seconds of one request.
        client: An httpx client to use instead of a new one.
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
        """Return protocol and model; the same model at two addresses has one identity."""
        return f"{self._protocol}:{self._model}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        import httpx
        import numpy as np

        rows: list[list[float]] = []
        client = self._client or httpx.Client(follow_redirects=False)
        try:
            for start in range(0, len(texts), BATCH):
                batch = [text[:MAX_EMBEDDED_CHARS] or " " for text in texts[start : start + BATCH]]
                rows += self._request(client, batch)
        finally:
            if client is not self._client:
                client.close()
        if len({len(row) for row in rows}) > 1:
            raise ModelError(f"the embedder {self.identity!r} returned vectors of different lengths")
        return normalise_rows(np.asarray(rows, dtype=np.float32).reshape(len(texts), -1))

    def _request(self, client: Any, texts: list[str]) -> list[list[float]]:
        import httpx

        url = self._address + ("/embeddings" if self._protocol == "openai" else "/api/embed")
        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        max_bytes = FRAME_BYTES + len(texts) * MAX_SERVED_DIMENSIONS * JSON_BYTES_PER_NUMBER
        request = {"model": self._model, "input": texts}
        try:
            with client.stream(
                "POST", url, json=request, headers=headers, timeout=self._timeout_s
            ) as response:
                content = b""
                for chunk in response.iter_bytes():
                    content += chunk
                    if len(content) > max_bytes:
                        raise ModelError(f"the embedder {self.identity!r} answers without end")
                status = response.status_code
        except httpx.HTTPError as fault:
            raise ModelError(
                f"the embedder {self.identity!r} cannot be reached: {type(fault).__name__}",
                remedy="check memory.embedder and memory.base_url",
            ) from fault
        if status in (401, 403):
            raise ModelAuthError(f"the embedder {self.identity!r} refused the key (HTTP {status})")
        if status != 200:
            raise ModelError(f"the embedder {self.identity!r} answered HTTP {status}")
        return self._parse_vectors(content, len(texts))

    def _parse_vectors(self, content: bytes, count: int) -> list[list[float]]:
        try:
            answer = json.loads(content)
            if self._protocol == "openai":
                entries = sorted(answer["data"], key=lambda entry: entry["index"])
                vectors = [entry["embedding"] for entry in entries]
            else:
                vectors = answer["embeddings"]
            vectors = [[float(number) for number in vector] for vector in vectors]
        except (ValueError, KeyError, TypeError, RecursionError) as fault:
            raise ModelError(
                f"the embedder {self.identity!r} answered something else than vectors"
            ) from fault
        if len(vectors) != count or not all(0 < len(vector) <= MAX_SERVED_DIMENSIONS for vector in vectors):
            raise ModelError(f"the embedder {self.identity!r} gave {len(vectors)} vectors for {count} texts")
        return vectors


ADDRESSES = {"openai": "https://api.openai.com/v1", "ollama": "http://127.0.0.1:11434"}
NAMES = "hashed, minilm, openai:MODEL, ollama:MODEL or none"


def open_embedder(settings: Settings) -> Embedder | None:
    """Return the embedder that `memory.embedder` names; `None` if items are found by their words alone."""
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
    raise UsageError(f"memory.embedder is not an embedder: {name!r}", remedy=f"one of {NAMES}")

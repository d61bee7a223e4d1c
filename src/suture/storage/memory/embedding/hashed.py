"""The last resort: pieces of words, hashed into a vector. Nothing is downloaded or learned."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from suture.storage.memory.embedding.contract import unit_rows

if TYPE_CHECKING:
    from suture.storage.memory.embedding.contract import Vectors

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

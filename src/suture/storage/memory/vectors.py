"""Vectors of texts: words and letter n-grams, hashed into a fixed number of positions.

They need no download and no server. In measurements on pairs of related bugs, a language model's vectors did not find
the right memory more often (docs/results.md). numpy is imported when the first vector is computed.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from suture.storage.tuning import MAX_EMBEDDED_CHARS, VECTOR_DIMENSIONS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    """One row for each text, of length 1; a text without content has zeros."""

NGRAM_SIZES = (3, 4)
"""Lengths of the letter n-grams."""
WORD = re.compile(r"[a-z]+|\d+|[^\sa-z\d]")
CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")


def compute_vectors(texts: Sequence[str]) -> Vectors:
    """Return a vector for each text, in which every n-gram counts at a position and with a sign given by its hash.

    After Weinberger et al., Feature Hashing for Large Scale Multitask Learning (2009).
    """
    import numpy as np

    vectors = np.zeros((len(texts), VECTOR_DIMENSIONS), dtype=np.float32)
    for row, text in zip(vectors, texts, strict=True):
        for ngram in _ngrams(text[:MAX_EMBEDDED_CHARS]):
            hash_value = zlib.crc32(ngram.encode("utf-8", "surrogatepass"))
            # The highest bit gives the sign, so that n-grams at the same position cancel out on average.
            row[hash_value % VECTOR_DIMENSIONS] += 1.0 if hash_value >> 31 else -1.0
    # The square root dampens n-grams that occur often.
    vectors = np.sign(vectors) * np.sqrt(np.abs(vectors))
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)


def _ngrams(text: str) -> Iterator[str]:
    """Yield each word and its letter n-grams, with marks at the beginning and end of the word."""
    for word in WORD.findall(CAMEL_CASE.sub(" ", text).lower()):
        yield word
        padded = f"^{word}$"
        for size in NGRAM_SIZES:
            for start in range(len(padded) - size + 1):
                yield padded[start : start + size]

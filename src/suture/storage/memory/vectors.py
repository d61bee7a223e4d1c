"""Vectors of texts: words and letter n-grams, hashed into a fixed number of positions.

They need no download and no server. In measurements on pairs of related bugs, a language model's vectors did not find
the right memory more often (docs/results.md).
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterator, Sequence

from suture.storage.tuning import MAX_EMBEDDED_CHARS, VECTOR_DIMENSIONS

NGRAM_SIZES = (3, 4)
"""Lengths of the letter n-grams."""
WORD = re.compile(r"[a-z]+|\d+|[^\sa-z\d]")
CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")


def compute_vector(text: str) -> list[float] | None:
    """Return a vector of length 1 in which every n-gram counts at a position and with a sign given by its hash.

    `None` for a text without words. After Weinberger et al., Feature Hashing for Large Scale Multitask Learning (2009).
    """
    counts = [0.0] * VECTOR_DIMENSIONS
    for ngram in _ngrams(text[:MAX_EMBEDDED_CHARS]):
        hash_value = zlib.crc32(ngram.encode("utf-8", "surrogatepass"))
        # The highest bit gives the sign, so that n-grams at the same position cancel out on average.
        counts[hash_value % VECTOR_DIMENSIONS] += 1.0 if hash_value >> 31 else -1.0
    # The square root dampens n-grams that occur often.
    damped = [math.copysign(math.sqrt(abs(count)), count) for count in counts]
    length = math.hypot(*damped)
    return [number / length for number in damped] if length else None


def compute_signature(vector: Sequence[float]) -> bytes:
    """Return one bit for each number of a vector: whether it is positive.

    The fewer bits of two signatures differ, the nearer their vectors usually are, and bits are compared far faster.
    """
    bits = "".join("1" if number > 0 else "0" for number in vector)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def _ngrams(text: str) -> Iterator[str]:
    """Yield each word and its letter n-grams, with marks at the beginning and end of the word."""
    for word in WORD.findall(CAMEL_CASE.sub(" ", text).lower()):
        yield word
        padded = f"^{word}$"
        for size in NGRAM_SIZES:
            for start in range(len(padded) - size + 1):
                yield padded[start : start + size]

"""Vectors of texts that are spelled alike are similar, and so are their signatures."""

from __future__ import annotations

import math
from operator import mul

import pytest

from suture.storage.memory.vectors import compute_signature, compute_vector
from suture.storage.tuning import VECTOR_DIMENSIONS


def test_vectors_reflect_similar_spelling() -> None:
    query, alike, other = map(
        compute_vector, ("KeyError in read_config", "KeyError in readConfig", "matrix product")
    )
    assert query is not None
    assert alike is not None
    assert other is not None
    assert sum(map(mul, query, alike)) > 0.6 > 0.3 > sum(map(mul, query, other))
    assert math.hypot(*query) == pytest.approx(1)
    assert compute_vector("") is None


def test_a_signature_has_a_bit_for_each_positive_number() -> None:
    signature = compute_signature([1.0, -1.0, 0.0, 0.5, *[-1.0] * (VECTOR_DIMENSIONS - 5), 1.0])
    assert signature == bytes([0b1001_0000, *[0] * (VECTOR_DIMENSIONS // 8 - 2), 1])

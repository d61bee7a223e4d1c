"""Vectors of texts that are spelled alike are similar."""

from __future__ import annotations

import numpy as np

from suture.storage.memory.vectors import compute_vectors


def test_vectors_reflect_similar_spelling() -> None:
    vectors = compute_vectors(["KeyError in read_config", "KeyError in readConfig", "matrix product", ""])
    assert vectors[0] @ vectors[1] > 0.6 > 0.3 > vectors[0] @ vectors[2]
    assert np.allclose(np.linalg.norm(vectors[:3], axis=1), 1, atol=1e-5)
    assert not vectors[3].any()

"""Vectors of texts as numpy arrays. numpy is imported when the first vector is computed.

This file is separate from `embedders`, because the embedders that `embedders` opens import it too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    """One row for each text, of length 1."""


@contextlib.contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Let numpy multiply in one thread inside this context.

    BLAS threads wait for each other by spinning: on a busy machine they took 13 times the CPU time for a
    short text.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield


def normalise_rows(vectors: Vectors) -> Vectors:
    """Scale each row to length 1; a zero row stays."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)

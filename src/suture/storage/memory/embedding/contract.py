"""The protocol of embedders, which make vectors of texts, and what all of them share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

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

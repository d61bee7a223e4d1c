"""Types of columns that both engines hold, each in its own way."""

from __future__ import annotations

from array import array
from typing import Any

from sqlalchemy import Dialect, LargeBinary, String, Text
from sqlalchemy.types import TypeDecorator, TypeEngine


class SafeText(TypeDecorator[str]):
    """Text of anybody's: PostgreSQL takes no zero byte, and neither engine half a surrogate pair."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """From Python to what the engine stores."""
        return None if value is None else storable(value)


class SafeWord(TypeDecorator[str]):
    """A short text, such as a name; what is longer than its column is cut."""

    impl = String
    cache_ok = True

    def __init__(self, length: int = 200) -> None:
        super().__init__(length)
        self._length = length

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """From Python to what the engine stores."""
        return None if value is None else storable(value)[: self._length]


def storable(text: str) -> str:
    """Text that both engines take: what they do not becomes a replacement character or `?`."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


class Embedding(TypeDecorator["array[float]"]):
    """A vector of float32: pgvector's `vector` on PostgreSQL, little-endian bytes on SQLite.

    It takes any sequence of numbers, and gives an `array('f')`, which numpy reads without a copy
    (`numpy.frombuffer`). Rows of one table may have vectors of different lengths: each embedder has its own.
    """

    impl = LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Pgvector's own type, or bytes."""
        if dialect.name == "postgresql":
            from pgvector.sqlalchemy import Vector

            return dialect.type_descriptor(Vector())
        return dialect.type_descriptor(LargeBinary())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """From Python to what the engine stores."""
        if value is None:
            return None
        if dialect.name == "postgresql":
            return [float(number) for number in value]
        return vector_bytes(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> array[float] | None:
        """From what the engine stored to Python."""
        if value is None:
            return None
        if isinstance(value, bytes):
            return vector_of(value)
        return array("f", value.to_list() if hasattr(value, "to_list") else list(value))


def vector_bytes(numbers: Any) -> bytes:
    """Numbers as little-endian float32, four bytes each."""
    vector = array("f", numbers)
    if BIG_ENDIAN:
        vector.byteswap()
    return vector.tobytes()


def vector_of(content: bytes) -> array[float]:
    """The numbers of `vector_bytes`."""
    vector = array("f")
    vector.frombytes(content)
    if BIG_ENDIAN:
        vector.byteswap()
    return vector


BIG_ENDIAN = array("H", [1]).tobytes() == b"\x00\x01"

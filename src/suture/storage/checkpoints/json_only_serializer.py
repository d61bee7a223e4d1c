"""A serializer for checkpoints that accepts only plain JSON values, for both databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suture.errors import StorageError

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol


class JsonOnlySerializer:
    """Refuses values that would be read back as something else.

    LangGraph's own serializer writes any dataclass, and in strict mode reads it back as a bare dict.
    """

    def __init__(self, inner: SerializerProtocol) -> None:
        self._inner = inner

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Serialise as LangGraph does; raise `StorageError` for anything but plain JSON values."""
        # A top-level exception is how LangGraph records a failed node; it is stored as its repr.
        if not isinstance(obj, BaseException):
            _require_json_value(obj, "state")
        try:
            return self._inner.dumps_typed(obj)
        except (TypeError, ValueError) as fault:  # such as an int beyond 64 bits
            raise StorageError(f"a state cannot be checkpointed: {fault}") from fault

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Deserialise as LangGraph does."""
        return self._inner.loads_typed(data)


def _require_json_value(value: Any, path: str) -> None:
    cls = type(value)
    if value is None or cls in (bool, int, float):
        return
    if cls is str:
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise StorageError(f"{path} contains a lone surrogate, which would be stored as `?`")
    elif cls is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise StorageError(f"{path} has a key {key!r} that is not a string")
            _require_json_value(item, f"{path}[{key!r}]")
    elif cls is list:
        for index, item in enumerate(value):
            _require_json_value(item, f"{path}[{index}]")
    elif cls is tuple and value and all(_is_graph_type(item) for item in value):
        for item in value:  # LangGraph stores interrupts as a tuple; any other would come back as a list
            _require_json_value(item, path)
    elif _is_graph_type(value):
        _require_json_value(value.arg if cls.__name__ == "Send" else value.value, f"{path}.{cls.__name__}")
    else:
        raise StorageError(
            f"{path} is a {cls.__module__}.{cls.__qualname__}, not a plain JSON value",
            remedy="turn it into plain values with `encode_record`, or keep its hash",
        )


def _is_graph_type(value: Any) -> bool:
    cls = type(value)
    return cls.__module__ == "langgraph.types" and cls.__name__ in ("Send", "Interrupt", "Overwrite")

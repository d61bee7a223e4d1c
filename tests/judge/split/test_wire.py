"""Values that cross between the judge and the candidate keep their types, identities and changes."""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.judge.split.codec import Encoder, decode, is_well_formed
from suture.judge.split.wire import BadFrame, NotData, dump, load

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=1 << 62, max_value=1 << 200)
    | st.floats()
    | st.complex_numbers()
    | st.text(st.characters(codec=None, categories=("L", "N", "P", "S", "Z", "C", "Cs")))
    | st.binary()
    | st.builds(range, st.integers(), st.integers(), st.integers(min_value=1))
    | st.just(...)
    | st.fractions()
    | st.dates()
    | st.timedeltas()
)
KEYS = st.recursive(
    SCALARS, lambda s: st.lists(s, max_size=3).map(tuple) | st.frozensets(s, max_size=3), max_leaves=4
)
VALUES = st.recursive(
    KEYS | st.binary().map(bytearray),
    lambda v: (
        st.lists(v, max_size=4)
        | st.lists(v, max_size=4).map(tuple)
        | st.sets(KEYS, max_size=4)
        | st.dictionaries(KEYS, v, max_size=4)
        | st.lists(v, max_size=3).map(deque)
        | st.dictionaries(KEYS, v, max_size=3).map(OrderedDict)
        | st.builds(slice, v, v, v)
    ),
    max_leaves=8,
)


def refuse(thing: Any) -> Any:
    raise NotData(type(thing).__name__)


def transfer(value: Any) -> Any:
    encoder = Encoder(refuse)
    message = load(dump({"value": encoder.encode(value), "nodes": encoder.new_nodes()}))
    assert is_well_formed(message["value"], message["nodes"])
    return decode(message["value"], message["nodes"], refuse)[0]


def is_same(a: Any, b: Any) -> bool:
    """Return whether two values are equal in value and in every type; nan equals nan, and 0.0 differs from -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return bool(a.hex() == b.hex())
    if isinstance(a, complex):
        return is_same(a.real, b.real) and is_same(a.imag, b.imag)
    if isinstance(a, dict):
        pairs = zip(a.items(), b.items(), strict=True)
        return len(a) == len(b) and all(is_same(x, y) for p, q in pairs for x, y in zip(p, q, strict=True))
    if isinstance(a, (set, frozenset)):
        return len(a) == len(b) and all(any(is_same(x, y) for y in b) for x in a)
    if isinstance(a, slice):
        return all(
            is_same(x, y) for x, y in zip((a.start, a.stop, a.step), (b.start, b.stop, b.step), strict=True)
        )
    if isinstance(a, (list, tuple, deque)):
        return len(a) == len(b) and all(is_same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


@given(VALUES)
def test_every_value_survives_the_transfer(value: Any) -> None:
    assert is_same(transfer(value), value)


@pytest.mark.parametrize(
    "value",
    [
        "\ud83d\ude00",
        -0.0,
        math.nan,
        -math.inf,
        1 << 20_000,
        defaultdict(None, {1: [2]}),
        Counter("aab"),
        deque([1, 2], maxlen=2),
        Decimal("1.50"),
        Fraction(1, 3),
        date(2024, 2, 29),
        timedelta(days=-1, microseconds=3),
        {(1, frozenset({b"x"})): {None: ...}},
    ],
    ids=lambda value: type(value).__name__,
)
def test_special_values_survive_the_transfer(value: Any) -> None:
    assert is_same(transfer(value), value)


def test_aliases_and_cycles_survive_the_transfer() -> None:
    inner: list[Any] = []
    loop: dict[str, Any] = {"a": inner, "b": inner, "t": (inner,)}
    inner.append(loop)
    received = transfer(loop)
    assert received["a"] is received["b"] is received["t"][0]
    assert received["a"][0] is received


class AlwaysEqual:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]  # as Python sets it beside an __eq__


class IntSubclass(int):
    pass


@pytest.mark.parametrize(
    "value", [AlwaysEqual(), IntSubclass(3), [IntSubclass(3)], len, int, (AlwaysEqual(),)]
)
def test_only_exact_types_are_data(value: Any) -> None:
    with pytest.raises(NotData):
        transfer(value)


def test_only_changed_arguments_are_sent_back_and_updated_in_place() -> None:
    local: list[Any] = [[1], [math.nan]]
    nan = local[1][0]
    encoder = Encoder(refuse)
    value, nodes = encoder.encode(local), encoder.new_nodes()
    remote, objects = decode(value, nodes, refuse)
    remote[0].append(remote)
    remote_encoder = Encoder(refuse, objects)
    result = remote_encoder.encode(remote[0])
    changed = remote_encoder.changed_nodes(nodes)
    assert len(changed) == 1

    received, _ = decode(result, changed, refuse, dict(enumerate(encoder.objects)))
    assert received is local[0]
    assert local[0][1] is local
    assert local[1][0] is nan


def test_replacing_one_by_true_is_a_change() -> None:
    local = [1]
    encoder = Encoder(refuse)
    value, nodes = encoder.encode(local), encoder.new_nodes()
    remote, objects = decode(value, nodes, refuse)
    remote[0] = True
    remote_encoder = Encoder(refuse, objects)

    decode(
        remote_encoder.encode(None),
        remote_encoder.changed_nodes(nodes),
        refuse,
        dict(enumerate(encoder.objects)),
    )

    assert local[0] is True


@pytest.mark.parametrize(
    ("value", "nodes"),
    [
        (["r", 5], []),
        (["r", 0], [[0, "tuple", ["r", 0]]]),
        (["r", 0], [[0, "dict", 1]]),
        (["r", 0], [[0, "set", ["r", 1]], [1, "list"]]),
        (["i", "x"], []),
        (["f", 1], []),
        (["b", "0"], []),
        (["os.system", "true"], []),
        (["decimal.Decimal", "x"], []),
    ],
)
def test_malformed_frames_are_refused(value: Any, nodes: Any) -> None:
    with pytest.raises(BadFrame):
        decode(value, nodes, refuse)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_no_json_value_breaks_the_decoder(value: Any) -> None:
    if is_well_formed(value, []):
        with contextlib.suppress(BadFrame):
            decode(value, [], lambda v: v)


@pytest.mark.parametrize("frame", [b"", b"[]", b"[" * 100_000, b"\xff", b'{"a":'])
def test_malformed_bytes_are_refused(frame: bytes) -> None:
    with pytest.raises(BadFrame):
        load(frame)


def test_a_malformed_value_is_detected_without_decoding() -> None:
    deep = json.loads("[" * 50 + "]" * 50)
    odd: tuple[Any, ...] = (deep, {}, 1.5, ["nothing"], ["f"], [], ["f", "0x0p+0", "x"])

    for value in odd:
        assert not is_well_formed(value, [])
    assert not is_well_formed(None, [[-1, "list"]])
    assert not is_well_formed(None, [["0", "list"]])
    assert not is_well_formed(None, None)

"""Hypothesis tests as loops that do not need hypothesis."""

from __future__ import annotations

from typing import Any

import pytest

from suture.agents.roles.testers import properties_from_reply
from suture.errors import MalformedReply
from suture.models import Reply

HEAD = "import hypothesis.strategies as st\nfrom hypothesis import assume, given, settings\n\n"


def checks_of(test: str) -> list[str]:
    reply = Reply(text=f"```python\n{HEAD}{test}\n```")
    return [check.source for check in properties_from_reply(reply, "f").checks]


def inputs_of(strategy: str) -> list[Any]:
    """The inputs that a test with one argument gets."""
    (source,) = checks_of(f"@given({strategy})\ndef test_f(x):\n    assert f(x) is None")
    seen: list[Any] = []
    for _ in range(2):
        seen.append([])
        exec(source, {"f": seen[-1].append})
    assert seen[0] == seen[1], "another run draws other inputs"
    assert len(seen[0]) == 25
    values: list[Any] = seen[0]
    return values


def test_numbers_keep_their_bounds_and_reach_them() -> None:
    values = inputs_of("st.integers(min_value=2, max_value=9)")
    assert (min(values), max(values)) == (2, 9)
    assert all(type(value) is int for value in values)
    assert min(inputs_of("st.integers(0)")) == 0
    assert max(inputs_of("st.integers(max_value=-500)")) == -500
    assert all(0.5 <= value <= 1 for value in inputs_of("st.floats(0.5, 1.0, allow_nan=False)"))


def test_nested_strategies_are_drawn() -> None:
    lists = inputs_of("st.lists(st.integers(), min_size=1, max_size=3)")
    assert {len(value) for value in lists} == {1, 2, 3}
    assert {type(value) for value in inputs_of("st.one_of(st.none(), st.text('ab'))")} == {type(None), str}
    assert all(
        len(value) == 2 and value[1] == 7 for value in inputs_of("st.tuples(st.booleans(), st.just(7))")
    )
    assert set(inputs_of("st.sampled_from(['x', 'y'])")) == {"x", "y"}


def test_arguments_are_bound_by_name_and_by_place_and_assume_skips() -> None:
    test = (
        "@settings(max_examples=9)\n@given(a=st.integers(0, 3), b=st.just(5))\n"
        "def test_f(b, a):\n    assume(a > 1)\n    assert f(a, b) == a"
    )
    (source,) = checks_of(test)
    seen: list[tuple[int, int]] = []

    def f(a: int, b: int) -> int:
        seen.append((a, b))
        return a

    exec(source, {"f": f})
    assert set(seen) == {(2, 5), (3, 5)}
    seen.clear()
    (source,) = checks_of("@given(st.just(1), st.just(2))\ndef test_f(a, b):\n    assert f(a, b) == a")
    exec(source, {"f": f})
    assert set(seen) == {(1, 2)}
    with pytest.raises(AssertionError):
        exec(source, {"f": lambda a, b: a + 1})


@pytest.mark.parametrize(
    "test",
    [
        "@given(st.integers().map(str))\ndef test_f(x):\n    assert f(x)",
        "@given(st.data())\ndef test_f(x):\n    assert f(x)",
        "@given(st.lists(st.integers(), unique=True))\ndef test_f(x):\n    assert f(x)",
        "@given(st.integers())\ndef test_f(self, x):\n    assert f(x)",
        "@given(st.integers())\ndef test_f(x):\n    if x:\n        return\n    assert f(x)",
        "@given(st.sampled_from())\ndef test_f(x):\n    assert f(x)",
        f"@given({'st.one_of(' * 150}st.none(){')' * 150})\ndef test_f(x):\n    assert f(x)",
    ],
)
def test_unsupported_strategies_are_dropped_with_a_reason(test: str) -> None:
    with pytest.raises(MalformedReply, match="cannot be drawn without hypothesis"):
        checks_of(test)

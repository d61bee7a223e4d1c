"""Hypothesis tests become loops that do not need hypothesis."""

from __future__ import annotations

from typing import Any

import pytest

from suture.agents.roles.testers import properties_from_reply
from suture.errors import MalformedReply
from suture.models import Reply

HEAD = "import hypothesis.strategies as st\nfrom hypothesis import assume, given, settings\n\n"


def extract_checks(test: str) -> list[str]:
    reply = Reply(text=f"```python\n{HEAD}{test}\n```")
    return [check.source for check in properties_from_reply(reply, "f").checks]


def collect_inputs(strategy: str) -> list[Any]:
    """Return the inputs that a test with one argument gets."""
    (source,) = extract_checks(f"@given({strategy})\ndef test_f(x):\n    assert f(x) is None")
    inputs: list[Any] = []
    for _ in range(2):
        inputs.append([])
        exec(source, {"f": inputs[-1].append})
    assert inputs[0] == inputs[1], "another run has other inputs"
    assert len(inputs[0]) == 25
    values: list[Any] = inputs[0]
    return values


def test_numbers_reach_their_bounds() -> None:
    values = collect_inputs("st.integers(min_value=2, max_value=9)")
    assert (min(values), max(values)) == (2, 9)
    assert all(type(value) is int for value in values)
    assert min(collect_inputs("st.integers(0)")) == 0
    assert max(collect_inputs("st.integers(max_value=-500)")) == -500
    assert all(0.5 <= value <= 1 for value in collect_inputs("st.floats(0.5, 1.0, allow_nan=False)"))


def test_nested_strategies_are_supported() -> None:
    lists = collect_inputs("st.lists(st.integers(), min_size=1, max_size=3)")

    assert {len(value) for value in lists} == {1, 2, 3}
    assert {type(value) for value in collect_inputs("st.one_of(st.none(), st.text('ab'))")} == {
        type(None),
        str,
    }
    assert all(
        len(value) == 2 and value[1] == 7 for value in collect_inputs("st.tuples(st.booleans(), st.just(7))")
    )
    assert set(collect_inputs("st.sampled_from(['x', 'y'])")) == {"x", "y"}


def test_arguments_are_bound_and_assume_skips_inputs() -> None:
    test = (
        "@settings(max_examples=9)\n@given(a=st.integers(0, 3), b=st.just(5))\n"
        "def test_f(b, a):\n    assume(a > 1)\n    assert f(a, b) == a"
    )
    (source,) = extract_checks(test)
    inputs: list[tuple[int, int]] = []

    def f(a: int, b: int) -> int:
        inputs.append((a, b))
        return a

    exec(source, {"f": f})

    assert set(inputs) == {(2, 5), (3, 5)}
    inputs.clear()
    (source,) = extract_checks("@given(st.just(1), st.just(2))\ndef test_f(a, b):\n    assert f(a, b) == a")
    exec(source, {"f": f})
    assert set(inputs) == {(1, 2)}

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
        extract_checks(test)

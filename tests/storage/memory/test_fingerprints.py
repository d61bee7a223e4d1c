"""Error signatures: equal for errors of one kind, without any particulars."""

from __future__ import annotations

import pytest

from suture.core.records import CheckOutcome, Counterexample, Task, Verdict
from suture.storage.memory.fingerprints import (
    counterexample_signature,
    describe_difference,
    error_class,
    error_signature,
    fingerprint_failures,
)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("KeyError: 'mug'", "KeyError: <value>"),
        (
            "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
            "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
        ),
        ("TypeError: 'NoneType' object is not iterable", "TypeError: 'NoneType' object is not iterable"),
        (
            "FileNotFoundError: [Errno 2] No such file: '/tmp/a b/x.txt'",
            "FileNotFoundError: [Errno <number>] No such file: <value>",
        ),
        ("ValueError: <Foo object at 0x7f1234>", "ValueError: <Foo object at <address>>"),
        ("AssertionError: assert [1, 2, (3, 4)] == [1, 2]", "AssertionError: assert <value> == <value>"),
        ("OSError: cannot open src/app/io.py:12 now", "OSError: cannot open <path> now"),
        ("", "Failure"),
    ],
)
def test_a_signature_keeps_the_type_and_drops_particulars(error: str, expected: str) -> None:
    assert error_signature(error) == expected


def test_the_last_error_of_a_traceback_counts() -> None:
    log = "Traceback:\n  File b.py\nKeyError: 1\nDuring handling:\nZeroDivisionError: division by zero\n"
    assert error_signature(log) == "ZeroDivisionError: division by zero"


def test_errors_of_one_kind_have_the_same_signature() -> None:
    error = "AttributeError: 'Cart' object has no attribute 'totl'"
    assert error_signature(error) == error_signature("AttributeError: 'Order' object has no attribute 'sum'")
    assert error_signature(error) != error_signature(
        "AttributeError: 'NoneType' object has no attribute 'sum'"
    )


@pytest.mark.parametrize(
    ("actual", "expected", "difference"),
    [
        ("4", "5", "another int"),
        ("None", "[]", "NoneType in place of list"),
        ("4.0", "4", "float in place of int"),
        ("<object>", "1", "another value"),
    ],
)
def test_a_wrong_value_is_described_by_its_difference(actual: str, expected: str, difference: str) -> None:
    assert describe_difference(actual, expected) == difference

    counterexample = Counterexample(check_id="t", call="f(1)", actual=actual, expected=expected)
    assert (
        counterexample_signature(counterexample)
        == error_class(counterexample_signature(counterexample))
        == f"WrongResult: {difference}"
    )


def test_the_shape_of_the_failing_function_does_not_depend_on_names() -> None:
    source = "def f(xs):\n    t = 0\n    for x in xs:\n        t += x.price * 2\n    return t\n"

    def make_shape(code: str) -> str:
        fact = Counterexample(check_id="t", exception="AttributeError: price", file="a.py", line=4)
        outcome = CheckOutcome(check_id="t", status="failed", counterexample=fact)
        verdict = Verdict(candidate="", outcomes=(outcome,), evidence="split")
        return fingerprint_failures(verdict, {"a.py": code.encode()}, Task(statement=""))[0].shape

    assert {"FunctionDef", "For", "AugAssign"} <= set(make_shape(source).split())
    assert make_shape(source.replace("price", "cost")) == make_shape(source)
    assert make_shape("def f(:") == ""


def test_a_long_error_has_a_short_signature() -> None:
    assert len(error_signature("ValueError: " + "very long words " * 10_000)) <= 200

"""Which of the recorded calls of functions and methods can be made again."""

from __future__ import annotations

import pytest

from suture.judge.differential.recorded_calls import get_function_name, plan_calls
from suture.judge.trials.trial_records import ObservedCall

MODULE = """\
class Price:
    def __init__(self, cents, sign="$"):
        self.cents = cents

    def label(self, width):
        return width


class Plain:
    def double(self, n):
        return n


class Child(Price):
    def double(self, n):
        return n


def parse(text):
    return text
"""


def _record(function: str, arguments: str) -> ObservedCall:
    return ObservedCall(path="kit.py", function=function, line=1, arguments=arguments)


PRICE_3, PRICE_4 = "<kit.Price object at 0x3>", "<kit.Price object at 0x4>"


@pytest.mark.parametrize(
    ("recorded", "planned"),
    [
        ([("parse", "('a',)")], [("parse", "('a',)")]),
        (
            [("__init__", f"({PRICE_3}, 5, '$')"), ("label", f"({PRICE_3}, 8)")],
            [("Price.label/2", "(5, '$', 8,)")],
        ),
        ([("double", "(<kit.Plain object at 0x3>, 4)")], [("Plain.double/0", "(4,)")]),
        ([("__init__", f"({PRICE_3}, 5, '$')"), ("label", f"({PRICE_4}, 8)")], []),  # another object
        ([("__init__", f"({PRICE_3}, <kit.Plain object at 0x5>)"), ("label", f"({PRICE_3}, 8)")], []),
        ([("double", "(<kit.Child object at 0x3>, 4)")], []),  # the base class may need arguments
        ([("missing", "(1,)"), ("parse", "")], []),
    ],
)
def test_calls_with_literal_arguments_are_planned(
    recorded: list[tuple[str, str]], planned: list[tuple[str, str]]
) -> None:
    calls = [_record(function, arguments) for function, arguments in recorded]
    assert [call[1:] for call in plan_calls(calls, {"kit.py": MODULE})] == planned


def test_a_method_is_named_without_the_number_of_constructor_arguments() -> None:
    assert get_function_name("Price.label/2") == "Price.label"

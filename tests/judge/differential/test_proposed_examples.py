"""Calls with results are proposed for code that no test and no example judges."""

from __future__ import annotations

import ast
import itertools
import random

import pytest

from suture.core.ledger.kinds import RaisingCall
from suture.core.records import Candidate, Task
from suture.core.settings import SandboxSettings
from suture.judge import prepare_suite
from suture.judge.differential.proposed_examples import (
    find_main_function,
    find_shown_literals,
    generate_arguments,
    propose_examples,
)
from suture.judge.tuning import MAX_PROPOSED_CALLS, MAX_PROPOSED_EXAMPLES
from suture.sandbox import Sandbox


@pytest.mark.parametrize(
    ("signature", "types"),
    [
        ("(numbers)", (list,)),
        ("(words)", (list,)),
        ("(text)", (str,)),
        ("(n)", (int,)),
        ("(a, b=2)", (int,)),
        ("(x: float, flag: bool)", (float, bool)),
        ("(x: Optional[List[str]])", (list,)),
        ("(x: dict)", (dict,)),
        ("(x: tuple[int, str])", (tuple,)),
        ("(x: set[int] | None)", (set,)),
        ("(x: list[float], y: str)", (list, str)),
        ("()", ()),
    ],
)
def test_arguments_fit_the_annotations_and_names_of_parameters(
    signature: str, types: tuple[type, ...]
) -> None:
    function = ast.parse(f"def f{signature}: pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    first = next(generate_arguments(function, random.Random(0)))
    assert tuple(map(type, first)) == types


@pytest.mark.parametrize(
    ("statement", "signature", "first"),
    [
        ("Write a function that parses a duration like '1h30m' into seconds", "(text)", ["1h30m"]),
        ("Parse 1h30m, or don't accept it.", "(s: str)", ["1h30m"]),
        ("Write f, which reads dates (2024-01-05 or 5/1/2024).", "(text)", ["2024-01-05", "5/1/2024"]),
        ("Round 7.25 to the next quarter.", "(price)", [7.25]),
        ("Sum up [3, -1, 2].", "(numbers)", [[3, -1, 2]]),
        ("Say 'even' or 'odd'.", "(n: int)", [10]),  # the task shows no number
    ],
)
def test_literals_of_the_task_are_the_first_arguments(
    statement: str, signature: str, first: list[object]
) -> None:
    function = ast.parse(f"def f{signature}: pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    arguments = generate_arguments(function, random.Random(0), find_shown_literals(statement, "f"))
    assert [value for (value,) in itertools.islice(arguments, len(first))] == first


def test_the_main_function_is_the_one_that_no_other_calls() -> None:
    code = "def is_prime(n): return n == 2\ndef _x(): pass\ndef total(ns): return is_prime(len(ns))\n"
    main = find_main_function(code, None)
    asked = find_main_function(code, "is_prime")
    assert main is not None
    assert main.name == "total"
    assert asked is not None
    assert asked.name == "is_prime"
    assert find_main_function("def numbers(n):\n    yield n\n", None) is None


def test_two_parameters_that_only_their_use_explains_soon_get_the_same_type() -> None:
    function = ast.parse("def f(thing, other): return thing // other").body[0]
    assert isinstance(function, ast.FunctionDef)
    guesses = itertools.islice(generate_arguments(function, random.Random(0)), MAX_PROPOSED_CALLS)
    assert sum(all(isinstance(value, int) for value in arguments) for arguments in guesses) >= 3


@pytest.mark.timeout(10)
def test_many_parameters_of_unknown_type_soon_get_each_type() -> None:
    parameters = ", ".join(f"thing_{number:02}" for number in range(12))
    function = ast.parse(f"def f({parameters}): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    guesses = [*itertools.islice(generate_arguments(function, random.Random(0)), MAX_PROPOSED_CALLS)]
    uniform_types = [{*map(type, arguments)} for arguments in guesses]
    assert all(types in uniform_types[:10] for types in ({list}, {int}, {str}))
    assert len({repr(arguments) for arguments in guesses}) == MAX_PROPOSED_CALLS
    assert any(len(types) > 1 for types in uniform_types)


def test_texts_have_punctuation_accents_spaces_and_none_at_all() -> None:
    function = ast.parse("def slugify(title): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    guesses = itertools.islice(generate_arguments(function, random.Random(0)), MAX_PROPOSED_EXAMPLES)
    texts = [arguments[0] for arguments in guesses]
    assert "" in texts
    assert any(not text.isascii() for text in texts)
    assert any("," in text for text in texts)
    assert any("  " in text for text in texts)


async def test_a_division_is_shown_with_a_remainder(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    suite = await prepare_suite(Task(statement="Split a bill fairly."), sandbox, sandbox_settings)
    code = "def split_bill(cents, n):\n    return cents // n\n"

    examples = (
        await propose_examples([Candidate(files={"solution.py": code}, origin="sample")], suite)
    ).examples

    assert examples[0].call == "split_bill(10, 4)"
    assert examples[0].answers == ("2",)


async def test_a_parameter_of_unknown_type_is_tried_with_several(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    suite = await prepare_suite(Task(statement="Whether it is a palindrome."), sandbox, sandbox_settings)
    code = "def is_palindrome(thing):\n    return thing.lower() == thing.lower()[::-1]\n"

    examples = (
        await propose_examples([Candidate(files={"solution.py": code}, origin="sample")], suite)
    ).examples

    assert {example.answers for example in examples} == {("True",), ("False",)}
    assert 3 <= len(examples) <= 5


async def test_a_call_that_raises_is_shown_without_being_an_example(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    suite = await prepare_suite(Task(statement="The longest word."), sandbox, sandbox_settings)
    code = "def longest_word(sentence):\n    return max(sentence.split(), key=len)\n"

    proposed = await propose_examples([Candidate(files={"solution.py": code}, origin="sample")], suite)

    assert RaisingCall(call="longest_word('')", exception="ValueError") in proposed.raising_calls
    assert all(example.call != "longest_word('')" for example in proposed.examples)

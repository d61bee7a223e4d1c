"""A repair beside what is right, on generated calls, in a language whose functions are called from outside.

    SUTURE_DATA=... python benchmarks/generated_calls.py [--first N]

For `humanevalfix_js.py` and `go_bugs.py`. Run by itself it says whether the comparison can be believed: for
each record in JavaScript the reference beside itself, which must agree, and the given fault beside it.
Calls on which the reference raises, ends late or gives no value say nothing, and do not count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ending import exit_code_of

from suture.core.records import Language, Task
from suture.core.settings import SandboxSettings, Settings
from suture.judge.split.call_runner import CallRunner
from suture.judge.split.call_values import render_value, values_match
from suture.mutation.tree_sitter.node_kinds import parse_source_tree
from suture.mutation.tree_sitter.syntax_tree import walk
from suture.project.languages import LANGUAGES, JsonPlus
from suture.sandbox import Sandbox, discover_programs, open_sandbox

MOST_CALLS = 200
SEED = 7
CALL_S = 2.0
SETTINGS = SandboxSettings(test_timeout_s=90.0, check_timeout_s=90.0)
"""A compiler may be at work."""
LONGEST = 40
Arguments = list[JsonPlus]


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How often two programs answered alike.

    Attributes:
        compared: Calls on which the right one gave a value.
        agreed: Those on which the other gave the same.
        apart: The first on which it did not, in words.
    """

    compared: int = 0
    agreed: int = 0
    apart: str = ""


@dataclass(frozen=True, kw_only=True)
class Function:
    """What is called: a function, in the file of its language that holds it."""

    language: Language
    module: str
    name: str


async def agreement(
    function: Function,
    right: Mapping[str, str],
    other: Mapping[str, str],
    calls: Sequence[Arguments],
    sandbox: Sandbox,
) -> Agreement:
    """Call both with the same arguments; neither process holds more than its own program."""
    wanted = await _answers(function, right, calls, sandbox)
    told = [at for at, answer in enumerate(wanted) if _is_a_value(answer)]
    got = await _answers(function, other, [calls[at] for at in told], sandbox)
    driver = LANGUAGES[function.language].calls
    assert driver is not None
    agreed, apart = 0, ""
    for at, answer in zip(told, got, strict=True):
        if "value" in answer and values_match(wanted[at]["value"], answer["value"]):
            agreed += 1
        elif not apart:
            values = ", ".join(render_value(value, driver) for value in calls[at])
            said = render_value(answer["value"], driver) if "value" in answer else str(answer)[:100]
            apart = f"{function.name}({values}) is {render_value(wanted[at]['value'], driver)}, and not {said}"
    return Agreement(compared=len(told), agreed=agreed, apart=apart)


def _is_a_value(answer: Mapping[str, Any]) -> bool:
    value = answer.get("value", ["undefined"])
    return value not in (["undefined"], ["number", "NaN"]) and "foreign" not in json.dumps(value)


async def _answers(
    function: Function, files: Mapping[str, str], calls: Sequence[Arguments], sandbox: Sandbox
) -> list[dict[str, Any]]:
    task = Task(statement="", language=function.language, module=function.module, entry_point=function.name)
    interpreter = discover_programs(None, os.environ, function.language)
    known = CallRunner(task=task, sandbox=sandbox, settings=SETTINGS, interpreter=interpreter)
    return await known.answers(calls, {path: text.encode() for path, text in files.items()}, CALL_S)


def calls_in(source: str, function: Function) -> list[Arguments]:
    """The arguments of the calls in a text of tests that are literals alone."""
    driver = LANGUAGES[function.language].calls
    assert driver is not None
    found: dict[str, Arguments] = {}
    for node in walk(parse_source_tree(source, f"a{LANGUAGES[function.language].extensions[0]}", function.language)):
        called, given = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if node.type != "call_expression" or called is None or given is None:
            continue
        text = (given.text or b"").decode()
        if (called.text or b"").decode() == function.name and (values := driver.read_literals(text[1:-1])):
            found.setdefault(text, list(values))
    return list(found.values())


def generated(seeds: Sequence[Arguments], most: int = MOST_CALLS) -> list[Arguments]:
    """The seeds, and what a few small changes make of them; types stay as they are."""
    drawn = random.Random(SEED)
    found = {json.dumps(seed): seed for seed in seeds}
    for _ in range(most * 4 if seeds else 0):
        if len(found) >= most:
            break
        args = [*drawn.choice(seeds)]
        for _ in range(drawn.randint(1, 3)):
            if args:
                at = drawn.randrange(len(args))
                args[at] = _changed(args[at], drawn)
        found.setdefault(json.dumps(args), args)
    return list(found.values())


def _changed(value: JsonPlus, drawn: random.Random) -> JsonPlus:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        near = abs(value) + 3
        return drawn.choice((value - 1, value + 1, drawn.randint(0, near), drawn.randint(0, 2 * near)))
    if isinstance(value, float):
        return round(drawn.choice((value + 0.5, value / 2, value * drawn.random())), 3)
    if isinstance(value, str):
        return "".join(_fewer_or_more(list(value), list(value) or [" "], drawn))
    if isinstance(value, list) and value[0] == "list":
        items = value[1]
        if items and drawn.random() < 0.5:
            at = drawn.randrange(len(items))
            return ["list", [*items[:at], _changed(items[at], drawn), *items[at + 1 :]]]
        return ["list", _fewer_or_more(items, items, drawn)]
    return value


def _fewer_or_more(parts: list[Any], pool: Sequence[Any], drawn: random.Random) -> list[Any]:
    """The parts with one less, one twice, two exchanged, in another order, or none at all."""
    parts = list(parts)
    if not parts:
        return list(pool[:1])
    first, second = drawn.randrange(len(parts)), drawn.randrange(len(parts))
    how = drawn.randrange(12)
    if how == 0:
        return []
    if how == 1:
        return parts[::-1]
    if how < 5:
        del parts[first]
    elif how < 9 and len(parts) < LONGEST:
        parts.insert(first, drawn.choice(pool))
    else:
        parts[first], parts[second] = parts[second], parts[first]
    return parts


def _records(first: int | None) -> Iterator[Mapping[str, Any]]:
    from data_files import read_data

    yield from list(read_data("humanevalfix/js"))[:first]


async def _look(first: int | None) -> None:
    from humanevalfix_js import compared_with

    sandbox = open_sandbox(Settings().sandbox)
    seen = alike = without = 0
    unseen: list[str] = []
    try:
        for record in _records(first):
            own = await compared_with(record, record["prompt"] + record["canonical_solution"], sandbox)
            fault = await compared_with(record, record["prompt"] + record["buggy_solution"], sandbox)
            without += not own.compared
            alike += bool(own.compared) and own.agreed == own.compared
            seen += fault.agreed < fault.compared
            if own.agreed < own.compared or (own.compared and fault.agreed == fault.compared):
                unseen.append(f"{record['task_id']} ({own.agreed} of {own.compared} agree) {own.apart}")
    finally:
        await sandbox.close()
    print(f"without calls of literals {without}; references that agree with themselves {alike}; ", end="")
    print(f"faults seen {seen}")
    print("\n".join(unseen))


def main() -> None:
    """Read the flags."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first", type=int)
    asyncio.run(_look(parser.parse_args().first))


if __name__ == "__main__":
    sys.exit(exit_code_of(main))

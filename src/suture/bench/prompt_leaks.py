"""Check on a real run that no hidden check appears in a prompt.

This searches the prompts for whole lines of the hidden tests, and for calls whose arguments are too rare to
appear by chance.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from suture.bench.datasets.evalplus import CASE
from suture.bench.problem import Problem, Regime
from suture.core.ledger import RunFolder
from suture.judge import extract_asserts, extract_examples
from suture.judge.extraction.literal_calls import is_literal
from suture.project.python_source.parsing import parse_module

MIN_LINE_CHARS = 12
"""Minimum length of a compared line; shorter ones appear in any program. Chosen by judgement; not measured."""


def find_leaks(problem: Problem, folder: RunFolder, regime: Regime = "visible") -> tuple[str, ...]:
    """Return the parts of the hidden checks that appear in a run's prompts although no solver may see them.

    A model that knows the data set by heart may write a hidden check itself. It is not a leak if the model then
    sees the check again as part of its own code. What a model only repeats from a prompt does not count as
    written by it. In the regime `self`, visible checks that the statement does not contain are hidden too.
    """
    exchanges = [
        _read_exchange(json.loads(path.read_bytes())) for path in sorted(folder.replies_path.glob("*.json"))
    ]
    visible_text = "\n".join(_visible_texts(problem, regime))
    leaks: set[str] = set()
    for program in (problem.hidden, problem.visible) if regime == "self" else (problem.hidden,):
        leaks.update(_leaked_lines(program, visible_text, exchanges))
        leaks.update(_leaked_calls(program, problem, visible_text, exchanges))
    return tuple(sorted(leaks))


@dataclass(frozen=True, kw_only=True)
class _Exchange:
    """A prompt and the reply to it."""

    prompt: str
    reply: str


def _read_exchange(entry: dict[str, Any]) -> _Exchange:
    prompt = "\n".join(message["content"] for message in entry["messages"])
    return _Exchange(prompt=prompt, reply=entry.get("reply", {}).get("text", ""))


def _visible_texts(problem: Problem, regime: Regime) -> Iterator[str]:
    """Yield what a solver may see; the examples of the statement also as the asserts that they become."""
    yield problem.statement
    yield from problem.given_files.values()
    yield from (check.source for check in extract_examples(problem.statement, problem.entry_point))
    if regime != "self":
        yield problem.visible
        yield from (check.source for check in extract_asserts(problem.visible, provenance="visible"))


def _leaked_lines(program: str, visible_text: str, exchanges: Sequence[_Exchange]) -> Iterator[str]:
    for line in set(map(str.strip, program.splitlines())):
        # Signatures and imports do not reveal what the tests expect.
        is_distinctive = len(line) >= MIN_LINE_CHARS and not line.startswith(("def ", "import ", "from "))
        if not is_distinctive or line in visible_text:
            continue
        is_prompted = any(line in exchange.prompt for exchange in exchanges)
        if is_prompted and not any(
            line in exchange.reply and line not in exchange.prompt for exchange in exchanges
        ):
            yield line


def _leaked_calls(
    program: str, problem: Problem, visible_text: str, exchanges: Sequence[_Exchange]
) -> Iterator[str]:
    calls = collect_hidden_calls(program, problem.entry_point)
    prompted_calls = [find_call_arguments(exchange.prompt, calls.names) for exchange in exchanges]
    replies = [compact_text(exchange.reply) for exchange in exchanges]
    compact_visible_text, visible_atoms = compact_text(visible_text), frozenset(split_atoms(visible_text))
    for call, beginnings in calls.beginnings.items():
        if not any(_any_begins_with(arguments, beginnings) for arguments in prompted_calls):
            continue
        if _contains_arguments(compact_visible_text, beginnings):
            continue
        # Other arguments may appear by chance in the run's own tests, which are made from the statement.
        if measure_rarity(call.removeprefix(problem.entry_point), visible_atoms) < MIN_RARITY:
            continue
        is_written_by_model = any(
            _contains_arguments(reply, beginnings) and not _any_begins_with(arguments, beginnings)
            for arguments, reply in zip(prompted_calls, replies, strict=True)
        )
        if not is_written_by_model:
            yield call


def _any_begins_with(arguments: Iterable[str], beginnings: tuple[str, ...]) -> bool:
    return any(text.startswith(beginnings) for text in arguments)


def _contains_arguments(text: str, beginnings: tuple[str, ...]) -> bool:
    """Return whether a prompt contains the arguments, however they are passed, such as by a loop over cases."""
    return any(arguments.removesuffix(")") in text for arguments in beginnings)


MIN_RARITY = 6
"""Calls with less rare arguments may appear by chance (see `measure_rarity`). Chosen by judgement; not measured."""
MAX_COMPARED_CHARS = 60
"""Characters of a call's arguments, with the closing bracket, that are compared: counterexamples shorten them."""
MAX_TAIL_CHARS = 600
"""Characters after a function name that are searched, blanks included: far more than are compared,
because blanks are removed first. Chosen by judgement; not measured."""
CONSTANTS = frozenset(("inf", "nan", "infj", "nanj"))
"""Names for values without a literal, which `repr` writes and the test programs of EvalPlus define."""
ATOM_RE = re.compile(r"[^\s\[\](){},:'\"]+")
"""A number or a word: what is left between blanks, brackets, commas, colons and quotes."""


@dataclass(frozen=True, kw_only=True)
class HiddenCalls:
    """The calls of a test program that are recognised wherever they appear.

    Attributes:
        names: Names of the candidate: its own, and those that the program uses for it.
        beginnings: A call as text -> how its arguments may begin, without blanks: as in the program, and as
            the `repr` of their values.
    """

    names: frozenset[str]
    beginnings: Mapping[str, tuple[str, ...]]


def compact_text(text: str) -> str:
    """Return a string without blanks and with one kind of quotes."""
    return "".join(text.split()).replace('"', "'")


def find_call_arguments(text: str, names: Iterable[str]) -> frozenset[str]:
    """Return what follows the opening bracket of every call of these names, without blanks and shortened."""
    opening = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(names)))})\s*\(")
    ends = (match.end() for match in opening.finditer(text))
    tails = (compact_text(text[end : end + MAX_TAIL_CHARS]) for end in ends)
    return frozenset(tail[:MAX_COMPARED_CHARS] for tail in tails)


@lru_cache(maxsize=64)
def collect_hidden_calls(program: str, entry_point: str) -> HiddenCalls:
    """Return the calls of a test program whose arguments are rare literals; none if it is invalid Python."""
    tree = parse_module(program) or ast.Module(body=[], type_ignores=[])
    names = frozenset((entry_point, CASE, *_aliases(tree, entry_point)))
    beginnings: dict[str, tuple[str, ...]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            texts = _argument_texts(node)
            if texts and min(map(measure_rarity, texts)) >= MIN_RARITY:
                compact_texts = (compact_text(f"{text})") for text in texts)
                beginnings[f"{entry_point}({texts[0]})"] = tuple(
                    text[:MAX_COMPARED_CHARS] for text in compact_texts
                )
    return HiddenCalls(names=names, beginnings=beginnings)


def _aliases(tree: ast.Module, entry_point: str) -> Iterator[str]:
    """Yield names for the entry point, such as `candidate` in `def check(candidate)`."""
    defined = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in defined:
            parameters = defined[node.func.id].args.args
            for parameter, argument in zip(parameters, node.args, strict=False):
                if isinstance(argument, ast.Name) and argument.id == entry_point:
                    yield parameter.arg


def _argument_texts(call: ast.Call) -> list[str]:
    """Return the arguments as source and as the `repr` of their values; empty if they are not literals."""
    arguments = [("", value) for value in call.args]
    arguments += [(f"{keyword.arg}=", keyword.value) for keyword in call.keywords]
    if not all(_is_constant(value) for _, value in arguments):
        return []
    source_text = ", ".join(prefix + ast.unparse(value) for prefix, value in arguments)
    value_text = ", ".join(prefix + _render_value(value) for prefix, value in arguments)
    return list(dict.fromkeys((source_text, value_text)))


def _is_constant(node: ast.expr) -> bool:
    """Return whether an argument is a literal, or contains no names but those of `CONSTANTS`."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return is_literal(node) if not names & CONSTANTS else names <= CONSTANTS


def _render_value(node: ast.expr) -> str:
    """Return the `repr` of a literal's value; for arithmetic and for names such as `inf`, the source."""
    try:
        return repr(ast.literal_eval(node))
    except ValueError:
        return ast.unparse(node)


def measure_rarity(text: str, known_atoms: Container[str] = ()) -> int:
    """Return how unlikely it is that these arguments appear by chance.

    The measure counts the different characters of each number and word that is neither repeated nor among the
    `known_atoms`. A number that continues the sequence of the two before it counts nothing.
    """
    rarity, seen_atoms = 0, set[str]()
    last_numbers: list[float] = []  # at most two, without a word in between
    for atom in split_atoms(text):
        number = _parse_number(atom)
        continues_sequence = (
            number is not None
            and len(last_numbers) == 2
            and number - last_numbers[1] == last_numbers[1] - last_numbers[0]
        )
        if atom not in seen_atoms and atom not in known_atoms and not continues_sequence:
            rarity += len(set(atom))
        last_numbers = [] if number is None else [*last_numbers[-1:], number]
        seen_atoms.add(atom)
    return rarity


def split_atoms(text: str) -> list[str]:
    """Return the numbers and words of a string, in order."""
    return ATOM_RE.findall(text)


def _parse_number(atom: str) -> float | None:
    try:
        return float(atom)
    except ValueError:
        return None

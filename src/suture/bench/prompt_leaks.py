"""Checking law 1 on a real run: no hidden check may appear in a prompt.

Whole lines of the hidden tests are searched for, and calls whose arguments are too rare to appear by chance.
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
from suture.judge.extraction.prose_literals import is_literal
from suture.project.python_source.parsing import parse_module

MIN_LINE_CHARS = 12
"""Shorter lines appear in any program."""


def find_leaks(problem: Problem, folder: RunFolder, regime: Regime = "visible") -> tuple[str, ...]:
    """Return the parts of the hidden checks that appear in a run's prompts without having been shown there.

    A model that knows the data set by heart may write a hidden check itself; that it sees it again with its
    own code is no leak. What a model only repeats from a prompt does not count as written by it.

    Args:
        regime: What the loop may see; in `self`, visible checks that the statement does not show are secret
            too.
    """
    exchanges = [
        _Exchange.of(json.loads(path.read_bytes())) for path in sorted(folder.replies_path.glob("*.json"))
    ]
    shown = "\n".join(_shown(problem, regime))
    secret = (problem.hidden, *((problem.visible,) if regime == "self" else ()))
    return tuple(
        sorted(
            {
                leak
                for program in secret
                for leak in (
                    *_leaked_lines(program, shown, exchanges),
                    *_leaked_calls(program, problem, shown, exchanges),
                )
            }
        )
    )


@dataclass(frozen=True, kw_only=True)
class _Exchange:
    prompt: str
    reply: str

    @classmethod
    def of(cls, entry: dict[str, Any]) -> _Exchange:
        prompt = "\n".join(message["content"] for message in entry["messages"])
        return cls(prompt=prompt, reply=entry.get("reply", {}).get("text", ""))


def _shown(problem: Problem, regime: Regime) -> Iterator[str]:
    """What a solver may see; the examples of the statement also as the asserts that they become."""
    yield problem.statement
    yield from problem.given_files.values()
    yield from (check.source for check in extract_examples(problem.statement, problem.entry_point))
    if regime != "self":
        yield problem.visible
        yield from (check.source for check in extract_asserts(problem.visible, provenance="visible"))


def _leaked_lines(secret: str, shown: str, exchanges: Sequence[_Exchange]) -> Iterator[str]:
    for line in set(map(str.strip, secret.splitlines())):
        says_something = len(line) >= MIN_LINE_CHARS and not line.startswith(("def ", "import ", "from "))
        if not says_something or line in shown or not any(line in one.prompt for one in exchanges):
            continue
        if not any(line in one.reply and line not in one.prompt for one in exchanges):
            yield line


def _leaked_calls(secret: str, problem: Problem, shown: str, exchanges: Sequence[_Exchange]) -> Iterator[str]:
    calls = collect_hidden_calls(secret, problem.entry_point)
    shown_calls = [find_call_arguments(one.prompt, calls.names) for one in exchanges]
    everything = frozenset[str]().union(*shown_calls)
    known, atoms = compact_text(shown), frozenset(split_atoms(shown))
    reply = [compact_text(one.reply) for one in exchanges]
    for call, written in calls.written.items():
        if not _begins_with(everything, written) or _holds(known, written):
            continue
        new = measure_rarity(call.removeprefix(problem.entry_point), atoms)
        if (
            new < MIN_RARITY
        ):  # the run's own test, made from the statement's examples, may contain it by chance
            continue
        own = (
            _holds(words, written) and not _begins_with(there, written)
            for there, words in zip(shown_calls, reply, strict=True)
        )
        if not any(own):
            yield call


def _begins_with(shown_calls: Iterable[str], written: tuple[str, ...]) -> bool:
    return any(call.startswith(written) for call in shown_calls)


def _holds(text: str, written: tuple[str, ...]) -> bool:
    """Whether a text has the arguments, handed over in whatever way, such as by a loop over cases."""
    return any(arguments.removesuffix(")") in text for arguments in written)


MIN_RARITY = 6
"""Calls with less rare arguments may appear by chance (see `measure_rarity`)."""
MAX_COMPARED_CHARS = 60
"""Characters of a call's arguments, with the closing bracket, that are compared: a counterexample cuts them.
"""
MAX_TAIL_CHARS = 600
"""Characters after a function name that are searched, blanks included."""
CONSTANTS = frozenset(("inf", "nan", "infj", "nanj"))
ATOM_RE = re.compile(r"[^\s\[\](){},:'\"]+")


@dataclass(frozen=True, kw_only=True)
class HiddenCalls:
    """The calls of a test program that are recognised wherever they appear.

    Attributes:
        names: Names of the candidate: its own, and those that the program uses for it.
        written: A call as text -> how its arguments may begin, without blanks: as in the program, and as the
            `repr` of their values.
    """

    names: frozenset[str]
    written: Mapping[str, tuple[str, ...]]


def compact_text(text: str) -> str:
    """Return a text without blanks and with one kind of quotes."""
    return "".join(text.split()).replace('"', "'")


def find_call_arguments(text: str, names: Iterable[str]) -> frozenset[str]:
    """Return what follows the opening bracket of every call of these names, without blanks and shortened."""
    named = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(names)))})\s*\(")
    tails = (compact_text(text[found.end() : found.end() + MAX_TAIL_CHARS]) for found in named.finditer(text))
    return frozenset(tail[:MAX_COMPARED_CHARS] for tail in tails)


@lru_cache(maxsize=64)
def collect_hidden_calls(program: str, entry_point: str) -> HiddenCalls:
    """Return the calls of a test program whose arguments are rare literals; none if it is invalid Python."""
    tree = parse_module(program) or ast.Module(body=[], type_ignores=[])
    names = frozenset((entry_point, CASE, *_aliases(tree, entry_point)))
    calls: dict[str, tuple[str, ...]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            written = _written(node)
            if written and min(map(measure_rarity, written)) >= MIN_RARITY:
                begun = tuple(compact_text(f"{text})")[:MAX_COMPARED_CHARS] for text in written)
                calls[f"{entry_point}({written[0]})"] = begun
    return HiddenCalls(names=names, written=calls)


def _aliases(tree: ast.Module, entry_point: str) -> Iterator[str]:
    """Yield names for the entry point, such as `candidate` in `def check(candidate)`."""
    defined = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in defined:
            parameters = defined[node.func.id].args.args
            for parameter, given in zip(parameters, node.args, strict=False):
                if isinstance(given, ast.Name) and given.id == entry_point:
                    yield parameter.arg


def _written(call: ast.Call) -> list[str]:
    """Return the arguments as source and as the `repr` of their values; empty if they are no literals."""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not all(map(_is_constant, values)):
        return []
    named = [f"{keyword.arg}=" for keyword in call.keywords]
    heads = [""] * len(call.args) + named
    sources = [ast.unparse(value) for value in values]
    rendered = [_render_literal(value, source) for value, source in zip(values, sources, strict=True)]
    texts = [", ".join(map("".join, zip(heads, texts, strict=True))) for texts in (sources, rendered)]
    return list(dict.fromkeys(texts))


def _is_constant(node: ast.expr) -> bool:
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return is_literal(node) if not names & CONSTANTS else names <= CONSTANTS


def _render_literal(node: ast.expr, source: str) -> str:
    """Yield what a solver may see; examples of the statement also as the asserts that they become."""
    try:
        return repr(ast.literal_eval(node))
    except ValueError:  # arithmetic, or a name such as `inf`
        return source


def measure_rarity(text: str, known: Container[str] = ()) -> int:
    """Return how unlikely it is that these arguments appear by chance.

    The measure counts the different characters of each number and word that is neither known nor repeated. A
    number that continues the sequence of the two before it counts nothing.

    Args:
        text: The arguments.
        known: Numbers and words that are shown elsewhere.
    """
    weight, seen = 0, set[str]()
    before: list[float] = []
    for atom in split_atoms(text):
        number = _number(atom)
        goes_on = number is not None and len(before) == 2 and number - before[1] == before[1] - before[0]
        if atom not in seen and atom not in known and not goes_on:
            weight += len(set(atom))
        before = [] if number is None else [*before[-1:], number]
        seen.add(atom)
    return weight


def split_atoms(text: str) -> list[str]:
    """Return the numbers and words of a text, in order."""
    return ATOM_RE.findall(text)


def _number(atom: str) -> float | None:
    try:
        return float(atom)
    except ValueError:
        return None

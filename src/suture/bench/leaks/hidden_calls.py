"""The calls of a hidden test program, so that one is known again where it is told as a counterexample."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from suture.bench.datasets.evalplus import CASE
from suture.judge.extraction.prose_literals import is_literal
from suture.project.python_source.parsing import parsed

LEAST_WEIGHT = 6
"""Of what a call hands over: so much is not told by chance (see `weight_of`)."""
BEGINNING = 60
"""Characters of arguments, with the bracket after them, that are compared: a counterexample cuts them."""
TAIL = 600
"""Characters after a name that are looked at, blanks included."""
CONSTANTS = frozenset(("inf", "nan", "infj", "nanj"))
ATOM_RE = re.compile(r"[^\s\[\](){},:'\"]+")


@dataclass(frozen=True, kw_only=True)
class HiddenCalls:
    """The calls of a test program that are known again wherever they are told.

    Attributes:
        names: What the candidate may be called: by its own name, or as the program calls it.
        written: A call as it may be told -> how its arguments may begin, compact: as in the program, and as
            their values are shown.
    """

    names: frozenset[str]
    written: Mapping[str, tuple[str, ...]]


def compact(text: str) -> str:
    """Without blanks, and with one kind of quotes."""
    return "".join(text.split()).replace('"', "'")


def calls_in(text: str, names: Iterable[str]) -> frozenset[str]:
    """What follows the bracket of every call of these names in a text, compact and cut."""
    named = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(names)))})\s*\(")
    tails = (compact(text[found.end() : found.end() + TAIL]) for found in named.finditer(text))
    return frozenset(tail[:BEGINNING] for tail in tails)


@lru_cache(maxsize=64)
def hidden_calls(program: str, entry_point: str) -> HiddenCalls:
    """The calls of a test program whose arguments are literals and rare; none where it is no Python."""
    tree = parsed(program) or ast.Module(body=[], type_ignores=[])
    names = frozenset((entry_point, CASE, *_aliases(tree, entry_point)))
    calls: dict[str, tuple[str, ...]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            written = _written(node)
            if written and min(map(weight_of, written)) >= LEAST_WEIGHT:
                begun = tuple(compact(f"{text})")[:BEGINNING] for text in written)
                calls[f"{entry_point}({written[0]})"] = begun
    return HiddenCalls(names=names, written=calls)


def _aliases(tree: ast.Module, entry_point: str) -> Iterator[str]:
    """`candidate` of `def check(candidate)`, where `check` gets the entry point."""
    defined = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in defined:
            parameters = defined[node.func.id].args.args
            for parameter, given in zip(parameters, node.args, strict=False):
                if isinstance(given, ast.Name) and given.id == entry_point:
                    yield parameter.arg


def _written(call: ast.Call) -> list[str]:
    """The arguments as source and as the `repr` of their values; nothing where they are no literals."""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not all(map(_is_constant, values)):
        return []
    named = [f"{keyword.arg}=" for keyword in call.keywords]
    heads = [""] * len(call.args) + named
    sources = [ast.unparse(value) for value in values]
    shown = [_shown(value, source) for value, source in zip(values, sources, strict=True)]
    texts = [", ".join(map("".join, zip(heads, texts, strict=True))) for texts in (sources, shown)]
    return list(dict.fromkeys(texts))


def _is_constant(node: ast.expr) -> bool:
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return is_literal(node) if not names & CONSTANTS else names <= CONSTANTS


def _shown(node: ast.expr, source: str) -> str:
    try:
        return repr(ast.literal_eval(node))
    except ValueError:  # arithmetic, or a name such as `inf`
        return source


def weight_of(text: str, known: Container[str] = ()) -> int:
    """How much there is in arguments that nobody would hit upon.

    Counted are the different characters of each number and word that is not known and does not come again. A
    number that goes on as the two before it did counts nothing.

    Args:
        text: The arguments.
        known: Numbers and words that are shown elsewhere.
    """
    weight, seen = 0, set[str]()
    before: list[float] = []
    for atom in atoms_of(text):
        number = _number(atom)
        goes_on = number is not None and len(before) == 2 and number - before[1] == before[1] - before[0]
        if atom not in seen and atom not in known and not goes_on:
            weight += len(set(atom))
        before = [] if number is None else [*before[-1:], number]
        seen.add(atom)
    return weight


def atoms_of(text: str) -> list[str]:
    """The numbers and words of a text, in order."""
    return ATOM_RE.findall(text)


def _number(atom: str) -> float | None:
    try:
        return float(atom)
    except ValueError:
        return None

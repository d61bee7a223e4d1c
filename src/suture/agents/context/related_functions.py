"""Find functions that help to understand a suspicious one: its callers, and functions that are similar."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath

from suture.agents.context.file_selection import is_encodable
from suture.agents.prompting.prompt_parts import RelatedFunction, Suspect
from suture.agents.tuning import (
    MAX_RELATED_FUNCTION_CHARS,
    MAX_RELATED_FUNCTIONS,
    MAX_SCANNED_FILES,
    MIN_NAME_SIMILARITY,
)
from suture.project.python_source.functions import FunctionFacts, iter_functions

INDENT = 4
WORD = re.compile(r"[A-Za-z][a-z]*|[0-9]+")


def find_related_functions(
    suspects: Sequence[Suspect], texts: Mapping[str, str], shown: Collection[str]
) -> tuple[RelatedFunction, ...]:
    """Return short functions that call a suspicious one, then those that are similar to it.

    Args:
        suspects: The suspicious functions, the most likely first.
        texts: The project's code without its tests: path -> text.
        shown: Texts that the prompt shows in any case; functions in them are left out.
    """
    named = [(suspect.path, suspect.function) for suspect in suspects if suspect.function]
    folders = {PurePosixPath(path).parent for path, _ in named}
    nearest_first = sorted(texts, key=lambda path: (PurePosixPath(path).parent not in folders, path))
    functions = [
        fact for path in nearest_first[:MAX_SCANNED_FILES] for fact in iter_functions(path, texts[path])
    ]
    suspicious = [f for place in named for f in functions if (f.path, _short_name(f)) == place]
    others = [
        fact
        for fact in functions
        if fact not in suspicious
        and 0 < len(fact.source) <= MAX_RELATED_FUNCTION_CHARS
        and is_encodable(fact.source)
        and not any(fact.source in text for text in shown)
    ]
    found: dict[FunctionFacts, RelatedFunction] = {}
    for suspect in suspicious:
        for fact in others:
            if _short_name(suspect) in {name.rpartition(".")[2] for name in fact.calls}:
                found.setdefault(fact, _related_function(fact, f"calls {_short_name(suspect)}"))
    for suspect in suspicious:
        similar = sorted(others, key=lambda fact: -_similarity(fact, suspect))
        for fact in similar[:MAX_RELATED_FUNCTIONS]:
            if _similarity(fact, suspect) >= MIN_NAME_SIMILARITY:
                found.setdefault(fact, _related_function(fact, f"is like {_short_name(suspect)}"))
    return tuple(found.values())[:MAX_RELATED_FUNCTIONS]


def _related_function(fact: FunctionFacts, why: str) -> RelatedFunction:
    head, *body = fact.source.split("\n")
    spare = min((len(line) - len(line.lstrip()) for line in body if line.strip()), default=0) - INDENT
    source = "\n".join([head, *(line[max(0, spare) :] for line in body)])  # A method moves to the margin.
    return RelatedFunction(path=fact.path, name=fact.name, why=why, source=source)


def _short_name(fact: FunctionFacts) -> str:
    return fact.name.rpartition(".")[2]


def _similarity(one: FunctionFacts, two: FunctionFacts) -> float:
    """Return the share of words that two functions have in common: in names, parameters and calls."""
    first, second = _words(one), _words(two)
    return len(first & second) / len(first | second) if first | second else 0.0


def _words(fact: FunctionFacts) -> frozenset[str]:
    signature = fact.signature[fact.signature.find(fact.name) + len(fact.name) :]
    words = {word.lower() for word in WORD.findall(_short_name(fact))}
    words |= {f"({word.lower()}" for word in WORD.findall(signature)} - {"(self", "(cls"}
    return frozenset(words | {f"{name.rpartition('.')[2]}()" for name in fact.calls})

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
    locations = [(suspect.path, suspect.function) for suspect in suspects if suspect.function]
    folders = {PurePosixPath(path).parent for path, _ in locations}
    nearest_first = sorted(texts, key=lambda path: (PurePosixPath(path).parent not in folders, path))
    functions = [
        function
        for path in nearest_first[:MAX_SCANNED_FILES]
        for function in iter_functions(path, texts[path])
    ]
    suspicious = [f for location in locations for f in functions if (f.path, _short_name(f)) == location]
    others = [
        function
        for function in functions
        if function not in suspicious
        and 0 < len(function.source) <= MAX_RELATED_FUNCTION_CHARS
        and is_encodable(function.source)
        and not any(function.source in text for text in shown)
    ]
    related: dict[FunctionFacts, RelatedFunction] = {}
    for suspect in suspicious:
        for function in others:
            if _short_name(suspect) in {name.rpartition(".")[2] for name in function.calls}:
                related.setdefault(function, _related_function(function, f"calls {_short_name(suspect)}"))
    for suspect in suspicious:
        most_similar = sorted(others, key=lambda function: -_similarity(function, suspect))
        for function in most_similar[:MAX_RELATED_FUNCTIONS]:
            if _similarity(function, suspect) >= MIN_NAME_SIMILARITY:
                related.setdefault(function, _related_function(function, f"is like {_short_name(suspect)}"))
    return tuple(related.values())[:MAX_RELATED_FUNCTIONS]


def _related_function(function: FunctionFacts, why: str) -> RelatedFunction:
    """Return the function for a prompt; a method is moved to the left margin."""
    header, *body = function.source.split("\n")
    indent = min((len(line) - len(line.lstrip()) for line in body if line.strip()), default=0)
    source = "\n".join([header, *(line[max(0, indent - INDENT) :] for line in body)])
    return RelatedFunction(path=function.path, name=function.name, why=why, source=source)


def _short_name(function: FunctionFacts) -> str:
    return function.name.rpartition(".")[2]


def _similarity(left: FunctionFacts, right: FunctionFacts) -> float:
    """Return the share of words that two functions have in common."""
    left_words, right_words = _words(left), _words(right)
    union = left_words | right_words
    return len(left_words & right_words) / len(union) if union else 0.0


def _words(function: FunctionFacts) -> frozenset[str]:
    """Return the words of a function's name and, marked by brackets, of its parameters and the calls in it."""
    signature = function.signature[function.signature.find(function.name) + len(function.name) :]
    words = {word.lower() for word in WORD.findall(_short_name(function))}
    words |= {f"({word.lower()}" for word in WORD.findall(signature)} - {"(self", "(cls"}
    return frozenset(words | {f"{name.rpartition('.')[2]}()" for name in function.calls})

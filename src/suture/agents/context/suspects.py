"""Find the functions that a search suspects, and the functions that help to understand those."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from suture.agents import tuning
from suture.agents.context.file_selection import is_encodable
from suture.agents.prompting.prompt_parts import RelatedFunction, Suspect
from suture.core.ledger import Event, last_payload
from suture.core.ledger.kinds import SearchFinished, SuspectLine
from suture.project.python_source.functions import FunctionFacts, iter_functions
from suture.project.python_source.statement_edits import split_lines

INDENT = 4
"""Blanks before the body of a function at the left margin."""
WORD = re.compile(r"[A-Za-z][a-z]*|[0-9]+")
"""A word of a name in snake case or camel case."""


def load_search_clues(events: Sequence[Event]) -> SearchFinished:
    """Return the result of a run's search without lines of low score; an empty one if there was no search."""
    search = last_payload(events, SearchFinished) or SearchFinished()
    min_score = tuning.MIN_SCORE_SHARE * max((line.score for line in search.faults), default=0.0)
    return replace(search, faults=tuple(line for line in search.faults if line.score >= min_score))


def find_suspicious_functions(files: Mapping[str, str], clues: SearchFinished) -> tuple[Suspect, ...]:
    """Return the suspicious functions, each with its most suspicious line if there is a single one.

    The line numbers of the clues refer to `files` (path -> text). Lines of other files are left out.
    """
    worst_lines: dict[tuple[str, str], list[SuspectLine]] = {}
    for line in clues.faults:  # the most suspicious first
        if line.path in files:
            group = worst_lines.setdefault((line.path, line.function), [line])
            if line.score == group[0].score and line is not group[0]:
                group.append(line)
    return tuple(
        Suspect(path=path, function=function, line=_line(files[path], group[0]) if len(group) == 1 else "")
        for (path, function), group in worst_lines.items()
    )


def _line(text: str, suspect: SuspectLine) -> str:
    return "".join(split_lines(text)[suspect.line - 1 : suspect.line]).strip()


def find_related_functions(
    suspects: Sequence[Suspect], texts: Mapping[str, str], shown: Collection[str]
) -> tuple[RelatedFunction, ...]:
    """Return short functions that call a suspicious one, then those that are similar to it.

    Args:
        texts: The project's code without its tests: path -> text.
        shown: Sources that the prompt shows in any case; functions in them are left out.
    """
    locations = [(suspect.path, suspect.function) for suspect in suspects if suspect.function]
    folders = {PurePosixPath(path).parent for path, _ in locations}
    nearest_first = sorted(texts, key=lambda path: (PurePosixPath(path).parent not in folders, path))
    functions = [
        function
        for path in nearest_first[: tuning.MAX_SCANNED_FILES]
        for function in iter_functions(path, texts[path])
    ]
    suspicious = [f for location in locations for f in functions if (f.path, _short_name(f)) == location]
    others = [
        function
        for function in functions
        if function not in suspicious
        and 0 < len(function.source) <= tuning.MAX_RELATED_FUNCTION_CHARS
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
        for function in most_similar[: tuning.MAX_RELATED_FUNCTIONS]:
            if _similarity(function, suspect) >= tuning.MIN_NAME_SIMILARITY:
                related.setdefault(function, _related_function(function, f"is like {_short_name(suspect)}"))
    return tuple(related.values())[: tuning.MAX_RELATED_FUNCTIONS]


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

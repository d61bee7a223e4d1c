"""Functions of the project that tell something about the one under suspicion: its callers, and its like."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath

from suture.agents import Sibling, Suspect
from suture.project.python_source.functions import FunctionFacts, functions_in

LONGEST = 1200
"""Characters of a function, about 350 tokens: a longer one would take the place of the code to mend."""
MOST_FILES = 200
"""Files that are read for it, those in the same folder first."""
INDENT = 4
MOST = 4
"""Functions that a brief holds; the prompt decides how many of them it has room for."""
ALIKE = 0.34
"""The least share of words that two functions must have in common to be alike."""
WORD = re.compile(r"[A-Za-z][a-z]*|[0-9]+")


def siblings_of(
    suspects: Sequence[Suspect], texts: Mapping[str, str], shown: Collection[str]
) -> tuple[Sibling, ...]:
    """Short functions that call a suspicious one, then those most like it; none that is shown anyway.

    Args:
        suspects: The functions under suspicion, the likeliest first.
        texts: Path -> text of the project's code, without its tests.
        shown: Code that the prompt shows in any case, as texts.
    """
    named = [(suspect.path, suspect.function) for suspect in suspects if suspect.function]
    homes = {PurePosixPath(path).parent for path, _ in named}
    near = sorted(texts, key=lambda path: (PurePosixPath(path).parent not in homes, path))
    known = [fact for path in near[:MOST_FILES] for fact in functions_in(path, texts[path])]
    guilty = [f for place in named for f in known if (f.path, _bare(f)) == place]
    others = [
        fact
        for fact in known
        if fact not in guilty
        and 0 < len(fact.source) <= LONGEST
        and _is_text(fact.source)
        and not any(fact.source in text for text in shown)
    ]
    found: dict[FunctionFacts, Sibling] = {}
    for suspect in guilty:
        for fact in others:
            if _bare(suspect) in {name.rpartition(".")[2] for name in fact.calls}:
                found.setdefault(fact, _sibling(fact, f"calls {_bare(suspect)}"))
    for suspect in guilty:
        alike = sorted(others, key=lambda fact: -_likeness(fact, suspect))
        for fact in alike[:MOST]:
            if _likeness(fact, suspect) >= ALIKE:
                found.setdefault(fact, _sibling(fact, f"is like {_bare(suspect)}"))
    return tuple(found.values())[:MOST]


def _sibling(fact: FunctionFacts, why: str) -> Sibling:
    head, *body = fact.source.split("\n")
    spare = min((len(line) - len(line.lstrip()) for line in body if line.strip()), default=0) - INDENT
    source = "\n".join([head, *(line[max(0, spare) :] for line in body)])  # a method moves to the margin
    return Sibling(path=fact.path, name=fact.name, why=why, source=source)


def _is_text(source: str) -> bool:
    """Bytes that are no text cannot be put into a prompt."""
    try:
        source.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bare(fact: FunctionFacts) -> str:
    return fact.name.rpartition(".")[2]


def _likeness(one: FunctionFacts, two: FunctionFacts) -> float:
    """The share of words that two functions have in common: of names, of parameters, of what they call."""
    mine, yours = _words(one), _words(two)
    return len(mine & yours) / len(mine | yours) if mine | yours else 0.0


def _words(fact: FunctionFacts) -> frozenset[str]:
    signature = fact.signature[fact.signature.find(fact.name) + len(fact.name) :]
    words = {word.lower() for word in WORD.findall(_bare(fact))}
    words |= {f"({word.lower()}" for word in WORD.findall(signature)} - {"(self", "(cls"}
    return frozenset(words | {f"{name.rpartition('.')[2]}()" for name in fact.calls})

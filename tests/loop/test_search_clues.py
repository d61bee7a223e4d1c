"""The clues that a search leaves for the model, and excerpts of long files."""

from __future__ import annotations

import ast

from suture.agents import Suspect
from suture.agents.context.file_selection import make_excerpt
from suture.agents.context.suspects import find_suspicious_functions, load_search_clues
from suture.agents.tuning import MAX_WHOLE_FILE_CHARS, SURROUNDING_LINES
from suture.core.ledger import Event
from suture.core.ledger.kinds import PartialRepair, SuspectLine
from suture.core.records import encode_record

FILLER = "def unused():\n" + "    x = 1\n" * (MAX_WHOLE_FILE_CHARS // 10) + "\n\n"
HEAD = "import os\n\n\nclass Cart(dict):\n    limit = 3\n\n    def add(self):\n        return 1\n\n"
METHOD = "    @property\n    def total(self):\n        return -1\n\n\n"
TEXT = HEAD + METHOD + FILLER
WRONG_LINE = TEXT.split("\n").index("        return -1") + 1


def make_fault(line: int, score: float, path: str = "a.py", function: str = "f") -> SuspectLine:
    return SuspectLine(path=path, line=line, function=function, score=score, ochiai=score, dstar=score)


def make_finished_event(*faults: SuspectLine, partial: tuple[PartialRepair, ...] = ()) -> Event:
    data = {
        "faults": [encode_record(fault) for fault in faults],
        "partial": [encode_record(h) for h in partial],
    }
    return Event(seq=0, time_s=0.0, kind="search.finished", data=data)


def test_without_a_search_there_are_no_clues() -> None:
    found = load_search_clues([])
    assert (found.faults, found.partial) == ((), ())


def test_clues_contain_the_worst_lines_and_the_partial_repairs() -> None:
    partial_repair = PartialRepair(path="a.py", label="line 1: < becomes <=", passing=1, failing=2)
    found = load_search_clues(
        [
            make_finished_event(
                make_fault(1, 0.9), make_fault(2, 0.5), make_fault(3, 0.1), partial=(partial_repair,)
            )
        ]
    )
    assert [fault.line for fault in found.faults] == [1, 2]
    assert found.partial == (partial_repair,)


def test_only_a_line_more_suspicious_than_its_function_is_named() -> None:
    clues = load_search_clues(
        [
            make_finished_event(
                make_fault(2, 0.9), make_fault(3, 0.9), make_fault(1, 0.8, function=""), make_fault(4, 0.6)
            )
        ]
    )
    suspects = find_suspicious_functions({"a.py": "x = 0\ndef f():\n    y\n    z\n"}, clues)
    assert suspects == (Suspect(path="a.py", function="f"), Suspect(path="a.py", function="", line="x = 0"))
    assert find_suspicious_functions({"b.py": ""}, clues) == ()


def test_an_excerpt_shows_the_suspicious_method_its_class_and_imports() -> None:
    excerpt = make_excerpt(TEXT, [WRONG_LINE])

    assert excerpt is not None
    assert len(excerpt) < 400
    assert "import os\n# ... 2 lines are not shown here\nclass Cart(dict):\n" in excerpt
    assert METHOD.rstrip() in excerpt
    assert "def add" not in excerpt
    ast.parse(excerpt)


def test_a_short_or_unsuspicious_file_is_shown_whole() -> None:
    assert make_excerpt(HEAD + METHOD, [WRONG_LINE]) is None
    assert make_excerpt(TEXT, []) is None
    assert make_excerpt("def f(:\n" * 2000, [1]) is None


def test_an_excerpt_of_a_long_function_shows_the_surrounding_lines() -> None:
    excerpt = make_excerpt(TEXT, [TEXT.count("\n") - 5])
    assert excerpt is not None
    assert len(excerpt) < 1000
    assert "def unused():\n" in excerpt
    assert SURROUNDING_LINES < excerpt.count("    x = 1\n") <= 2 * SURROUNDING_LINES + 1


def test_an_excerpt_outside_functions_shows_the_surrounding_lines() -> None:
    line = (FILLER + HEAD).split("\n").index("    limit = 3") + 1
    excerpt = make_excerpt(FILLER + HEAD, [line])
    assert excerpt is not None
    assert "class Cart(dict):\n    limit = 3\n" in excerpt
    assert len(excerpt) < 1000


def test_a_file_without_the_suspicious_line_is_shown_whole() -> None:
    assert make_excerpt(TEXT, [TEXT.count("\n") + 100]) is None

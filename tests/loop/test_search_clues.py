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
WRONG = TEXT.split("\n").index("        return -1") + 1


def fault(line: int, score: float, path: str = "a.py", function: str = "f") -> SuspectLine:
    return SuspectLine(path=path, line=line, function=function, score=score, ochiai=score, dstar=score)


def finished(*faults: SuspectLine, partial: tuple[PartialRepair, ...] = ()) -> Event:
    data = {"faults": [encode_record(f) for f in faults], "partial": [encode_record(h) for h in partial]}
    return Event(seq=0, time_s=0.0, kind="search.finished", data=data)


def test_without_a_search_there_are_no_clues() -> None:
    found = load_search_clues([])
    assert (found.faults, found.partial) == ((), ())


def test_only_lines_near_the_worst_are_shown_and_hints_come_back() -> None:
    hint = PartialRepair(path="a.py", label="line 1: < becomes <=", passing=1, failing=2)
    found = load_search_clues([finished(fault(1, 0.9), fault(2, 0.5), fault(3, 0.1), partial=(hint,))])
    assert [f.line for f in found.faults] == [1, 2]
    assert found.partial == (hint,)


def test_a_line_is_named_only_where_it_is_likelier_than_the_rest_of_its_function() -> None:
    clues = load_search_clues(
        [finished(fault(2, 0.9), fault(3, 0.9), fault(1, 0.8, function=""), fault(4, 0.6))]
    )
    suspects = find_suspicious_functions({"a.py": "x = 0\ndef f():\n    y\n    z\n"}, clues)
    assert suspects == (Suspect(path="a.py", function="f"), Suspect(path="a.py", function="", line="x = 0"))
    assert find_suspicious_functions({"b.py": ""}, clues) == ()


def test_of_a_long_file_the_function_under_suspicion_is_shown_with_its_class_and_the_imports() -> None:
    part = make_excerpt(TEXT, [WRONG])
    assert part is not None
    assert len(part) < 400
    assert "import os\n# ... 2 lines are not shown here\nclass Cart(dict):\n" in part
    assert METHOD.rstrip() in part
    assert "def add" not in part
    ast.parse(part)


def test_a_file_is_shown_whole_where_it_is_short_or_nothing_is_suspicious() -> None:
    assert make_excerpt(HEAD + METHOD, [WRONG]) is None
    assert make_excerpt(TEXT, []) is None
    assert make_excerpt("def f(:\n" * 2000, [1]) is None


def test_of_a_long_function_the_lines_around_the_suspicious_one_are_shown_with_its_head() -> None:
    part = make_excerpt(TEXT, [TEXT.count("\n") - 5])
    assert part is not None
    assert len(part) < 1000
    assert "def unused():\n" in part
    assert SURROUNDING_LINES < part.count("    x = 1\n") <= 2 * SURROUNDING_LINES + 1


def test_outside_of_functions_the_lines_around_are_shown() -> None:
    line = (FILLER + HEAD).split("\n").index("    limit = 3") + 1
    part = make_excerpt(FILLER + HEAD, [line])
    assert part is not None
    assert "class Cart(dict):\n    limit = 3\n" in part
    assert len(part) < 1000


def test_a_line_that_the_file_does_not_have_shows_the_whole() -> None:
    assert make_excerpt(TEXT, [TEXT.count("\n") + 100]) is None

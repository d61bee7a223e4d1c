"""Unparsable JavaScript, TypeScript and Go: the intended text is among the first repaired ones."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from failing_projects import make_failing_project
from requirements import Require
from suture.api import HealOptions, heal
from suture.core.records import CheckOutcome, Counterexample, Language
from suture.core.settings import BudgetSettings, ModelSettings, PathSettings, Settings
from suture.judge.runners.pytest_runner import RunAddition
from suture.judge.runners.test_command import TestCommand
from suture.mutation.syntax_repair.token_model import similar_keywords
from suture.mutation.syntax_repair.tree_repair import build_lexer, find_parsable_trees, find_tree_stop
from suture.mutation.tuning import MAX_TREE_CHARS
from suture.sandbox import BubblewrapSandbox
from suture.search.engine import syntax_recovery
from suture.search.engine.syntax_recovery import UnparsableFile, find_unparsable_file, recover_file
from suture.search.search_records import SearchLimits, SearchResult
from suture.search.tuning import MAX_TREE_TEXTS_RUN

MAX_RANK = 8
"""The intended text must be among this many repaired texts. The tests of the project choose between them."""
AMBIGUOUS = ("operator", "arrow", "deleted keyword")
"""Mistakes that the file alone hardly decides: the intended text must be among all texts that are run."""
JAVASCRIPT = """\
'use strict';

const WORDS = ['one', 'two', 'three'];

function shortest(words, least = 1) {
  let best = null;
  for (const word of words) {
    if (word.length >= least && (best === null || word.length < best.length)) {
      best = word;
    }
  }
  return best;
}

const sizes = (words) => words.map((word) => ({ word, size: word.length }));

class Shelf {
  constructor(words) {
    this.words = [...words];
  }

  label(mark) {
    return `${this.words.join(mark)}: ${shortest(this.words)}`;
  }
}

module.exports = { shortest, sizes, Shelf, WORDS };
"""
TYPESCRIPT = """\
export interface Range { from: number; to: number }

export function merge(ranges: Range[], gap: number = 0): Range[] {
  const sorted = [...ranges].sort((a, b) => a.from - b.from);
  const out: Range[] = [];
  for (const range of sorted) {
    const last = out[out.length - 1];
    if (last && range.from <= last.to + gap) {
      last.to = Math.max(last.to, range.to);
    } else {
      out.push({ ...range });
    }
  }
  return out;
}
"""
GO = """\
package shelf

import "strings"

// Shelf holds words.
type Shelf struct {
	Words []string
	Least int
}

// Shortest is the first word of the fewest letters.
func (s Shelf) Shortest() (string, bool) {
	best, found := "", false
	for _, word := range s.Words {
		if len(word) >= s.Least && (!found || len(word) < len(best)) {
			best, found = word, true
		}
	}
	return best, found
}

// Label joins the words.
func (s Shelf) Label(mark string) string {
	if len(s.Words) == 0 {
		return "nothing"
	}
	return strings.Join(s.Words, mark)
}
"""
INTENDED: dict[Language, tuple[str, str]] = {
    "javascript": ("shelf.js", JAVASCRIPT),
    "typescript": ("ranges.ts", TYPESCRIPT),
    "go": ("shelf.go", GO),
}
MISTAKES: list[tuple[Language, str, str, str]] = [
    ("javascript", "bracket", "join(mark)}", "join(mark}"),
    ("javascript", "bracket of a condition", "best.length)) {", "best.length) {"),
    ("javascript", "bracket too many", "words.map((word)", "words.map(((word)"),
    ("javascript", "wrong bracket", "[...words];", "[...words);"),
    ("javascript", "brace of a block that opens", "of words) {\n", "of words)\n"),
    ("javascript", "brace of a block that closes", "      best = word;\n    }\n", "      best = word;\n"),
    ("javascript", "brace of a class", "  }\n}\n\nmodule", "  }\n\nmodule"),
    ("javascript", "closing brace twice", "  return best;\n}\n", "  return best;\n}\n}\n"),
    ("javascript", "quote", "'two'", "'two"),
    ("javascript", "quote that opens", "'use strict'", "use strict'"),
    ("javascript", "quotes of two kinds", "'three'", "'three\""),
    ("javascript", "template", "(this.words)}`;", "(this.words)};"),
    ("javascript", "comma of a list", "'one', 'two'", "'one' 'two'"),
    ("javascript", "comma of an object", "shortest, sizes", "shortest sizes"),
    ("javascript", "colon", "size: word", "size word"),
    ("javascript", "operator", "length >= least", "length least"),
    ("javascript", "arrow", "(words) => words", "(words) words"),
    ("javascript", "keyword", "return best", "retrun best"),
    ("javascript", "keyword that begins", "function shortest", "fucntion shortest"),
    ("javascript", "keyword within", "word of words", "word fo words"),
    ("javascript", "deleted keyword", "function shortest", "shortest"),
    ("javascript", "stray sign", "best = word;", "best = word#;"),
    ("javascript", "word twice", "let best", "let let best"),
    ("typescript", "bracket", "a.from - b.from);", "a.from - b.from;"),
    ("typescript", "colon of a type", "ranges: Range[]", "ranges Range[]"),
    ("typescript", "bracket of a type", "out: Range[] =", "out: Range[ ="),
    ("typescript", "keyword", "interface", "interfcae"),
    ("typescript", "brace", "    } else {", "     else {"),
    ("go", "bracket", "len(best)) {", "len(best) {"),
    ("go", "brace of a block that opens", "== 0 {", "== 0"),
    ("go", "brace of a block that closes", "\t\treturn \"nothing\"\n\t}\n", "\t\treturn \"nothing\"\n"),
    ("go", "quote", '"nothing"', '"nothing'),
    ("go", "keyword", "range s.Words", "rnage s.Words"),
    ("go", "deleted keyword", "for _, word", "_, word"),
    ("go", "operator", "found := ", "found "),
    ("go", "comma", "s.Words, mark", "s.Words mark"),
    ("go", "stray sign", "found = word, true", "found = word, true)"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "name", "original", "mistake"), MISTAKES, ids=lambda part: part[:30])
def test_the_intended_text_is_among_the_first(
    language: Language, name: str, original: str, mistake: str
) -> None:
    path, intended = INTENDED[language]
    assert intended.count(original) == 1, name

    broken = intended.replace(original, mistake)
    assert find_tree_stop(broken, path, language) is not None, name

    repaired_texts = find_parsable_trees(path, {path: broken}, language, seconds=60)
    assert all(find_tree_stop(candidate.text, path, language) is None for candidate in repaired_texts)

    lexer = build_lexer(path, language)

    def token_texts(text: str) -> list[str]:
        return [token.text for token in lexer.tokens(text) if token.kind != "end"]

    max_rank = MAX_TREE_TEXTS_RUN if name in AMBIGUOUS else MAX_RANK
    assert token_texts(intended) in [
        token_texts(candidate.text) for candidate in repaired_texts[:max_rank]
    ], [candidate.label for candidate in repaired_texts[:max_rank]]


def test_two_mistakes_in_one_file_are_repaired() -> None:
    broken = JAVASCRIPT.replace("of words) {", "of words {").replace("return best", "retrun best")
    repaired_texts = find_parsable_trees("shelf.js", {"shelf.js": broken}, "javascript", seconds=60)
    assert JAVASCRIPT in [candidate.text for candidate in repaired_texts[:MAX_RANK]], [
        candidate.label for candidate in repaired_texts[:MAX_RANK]
    ]


def test_a_parsable_text_is_left_alone() -> None:
    for language, (path, intended) in INTENDED.items():
        assert find_tree_stop(intended, path, language) is None
        assert find_parsable_trees(path, {path: intended}, language, seconds=5) == []


def test_the_repair_of_prose_ends() -> None:
    text = "Once upon a time, in a (land [far { away\n" * 40
    assert len(find_parsable_trees("a.js", {"a.js": text}, "javascript", seconds=3)) <= 60


def test_a_file_that_is_too_large_is_not_repaired() -> None:
    broken = JAVASCRIPT.replace("of words) {\n", "of words)\n", 1)
    for size, is_offered in ((0, True), (MAX_TREE_CHARS, False)):
        text = broken + "// a line of words that says nothing of the code\n" * (size // 48)
        assert (
            bool(find_parsable_trees("shelf.js", {"shelf.js": text}, "javascript", seconds=60)) is is_offered
        )


def test_comments_strings_and_patterns_are_tokens_of_their_own() -> None:
    text = "a = /[/'\"]+/g.test(b) / 2; // it's\n/* ' */ c = `x\n'y` + 'z';"
    tokens = [token.text for token in build_lexer("a.js", "javascript").tokens(text)]
    pattern = ["a", "=", "/[/'\"]+/g", ".", "test", "(", "b", ")", "/", "2", ";", "\n"]
    assert tokens == [*pattern, "c", "=", "`x\n'y`", "+", "'z'", ";"]


def test_keywords_with_similar_letters_are_found() -> None:
    keywords = frozenset(("function", "for", "of", "return", "const", "continue"))
    assert [
        similar_keywords(word, keywords)[:1] for word in ("fucntion", "fo", "retun", "Const", "words")
    ] == [
        ["function"],
        ["of"],
        ["return"],
        ["const"],
        [],
    ]


def test_a_file_is_unparsable_only_if_a_test_reports_it() -> None:
    texts = {"a.js": "const a = (;\n", "b.js": "const b = 1;\n"}

    def find_unparsable(file: str, error: str, line: int = 0) -> UnparsableFile | None:
        fact = Counterexample(check_id="t", call="t", exception=error, file=file, line=line)
        outcome = CheckOutcome(check_id="t", status="failed", evidence="nonce", counterexample=fact)
        project = make_failing_project(FailingCommand(), {}, texts, outcome)
        return find_unparsable_file(project)

    faulty = UnparsableFile(path="a.js", line=0)

    assert find_unparsable("a.js", "SyntaxError: Unexpected token ';'", 1) == faulty
    assert find_unparsable("", "a.js:1 const a = (; SyntaxError: Unexpected token") == faulty
    assert find_unparsable("b.js", "SyntaxError: Illegal return statement", 1) == UnparsableFile(
        path="b.js", line=1
    )
    assert find_unparsable("b.js", "TypeError: b is no function", 1) is None
    assert find_unparsable("a.js", "AssertionError: 1 !== 2", 1) is None


def test_an_error_that_no_tree_shows_is_repaired_at_the_reported_line() -> None:
    broken = JAVASCRIPT.replace("'one'", "\u2018one\u2019")
    assert find_tree_stop(broken, "shelf.js", "javascript") is None
    assert find_parsable_trees("shelf.js", {"shelf.js": broken}, "javascript", seconds=20) == []
    repaired_texts = find_parsable_trees(
        "shelf.js", {"shelf.js": broken}, "javascript", seconds=20, reported_line=3
    )
    assert repaired_texts[0].text == JAVASCRIPT


JS_TESTS = """\
const test = require('node:test');
const assert = require('node:assert');
const { shortest, sizes } = require('./shelf.js');

test('shortest', () => assert.equal(shortest(['abc', 'de']), 'de'));
test('first', () => assert.equal(shortest(['ab', 'de']), 'ab'));
test('least', () => assert.equal(shortest(['a', 'de', 'fgh'], 2), 'de'));
test('sizes', () => assert.deepEqual(sizes(['a']), [{ word: 'a', size: 1 }]));
"""
GO_TESTS = """\
package shelf

import "testing"

func TestShortest(t *testing.T) {
	if word, found := (Shelf{Words: []string{"abc", "de", "fg"}}).Shortest(); word != "de" || !found {
		t.Fatal(word, found)
	}
	if word, _ := (Shelf{Words: []string{"a", "de"}, Least: 2}).Shortest(); word != "de" {
		t.Fatal(word)
	}
}

func TestLabel(t *testing.T) {
	if got := (Shelf{Words: []string{"a", "b"}}).Label("-"); got != "a-b" {
		t.Fatal(got)
	}
}
"""


class FailingCommand(TestCommand):
    """A command whose one test fails for every candidate."""

    test_files = ()

    def __init__(self) -> None: ...

    async def run_selected(
        self,
        files: Mapping[str, bytes],
        tests: Collection[str],
        wall_s: float | None = None,
        *,
        options: str = "",
        addition: RunAddition | None = None,
    ) -> tuple[CheckOutcome, ...]:
        return (CheckOutcome(check_id="t", status="failed", evidence="nonce"),)

    def copy_with_files(self, files: Mapping[str, bytes]) -> TestCommand:
        return self

    async def collect(self, *, run: bool = False) -> None: ...


def make_settings(folder: Path, seconds: float) -> Settings:
    return Settings(
        paths=PathSettings(home=folder / "home"),
        budget=BudgetSettings(seconds=seconds),
        model=ModelSettings(name="none"),
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("mistakes", "label_part"),
    [
        ((("of words) {\n", "of words)\n"),), "{ is missing"),
        ((("return best", "retrun best"), ("< best.length", "> best.length")), "becomes return"),
    ],
    ids=["a brace", "a fault after a syntax error"],
)  # fmt: skip
async def test_an_unparsable_file_is_healed_without_a_model(
    mistakes: tuple[tuple[str, str], ...],
    label_part: str,
    sandbox: BubblewrapSandbox,
    tmp_path: Path,
    require: Require,
) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    project = tmp_path / "project"
    project.mkdir()
    broken = JAVASCRIPT
    for original, mistake in mistakes:
        broken = broken.replace(original, mistake)
    (project / "shelf.js").write_text(broken)
    (project / "shelf.test.js").write_text(JS_TESTS)

    result = await heal(
        project,
        HealOptions(settings=make_settings(tmp_path, 100), test="node --test", sandbox=sandbox, apply=True),
    )

    assert result.outcome == "healed", result.reason
    assert (project / "shelf.js").read_text() == JAVASCRIPT
    assert result.candidate is not None
    assert label_part in result.candidate.label


@pytest.mark.timeout(300)
async def test_a_second_search_gets_the_remaining_time_of_the_first(
    sandbox: BubblewrapSandbox, tmp_path: Path, require: Require
) -> None:
    """Node rejects a name declared twice, which no tree shows, and no small change fixes the rest."""
    require("node", shutil.which("node") is not None, "it is not on PATH")
    project = tmp_path / "project"
    project.mkdir()
    broken = JAVASCRIPT.replace("return best", "let best = null\n  return best")
    assert broken != JAVASCRIPT

    (project / "shelf.js").write_text(broken)
    tests = JS_TESTS + "test('none', () => assert.equal(sizes(['a']).length, 'eight'));\n"
    (project / "shelf.test.js").write_text(tests)
    result = await heal(
        project, HealOptions(settings=make_settings(tmp_path, 25), test="node --test", sandbox=sandbox)
    )
    assert result.outcome == "not_healed", result.reason


async def test_no_further_text_is_searched_once_all_candidates_were_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searches: list[int] = []

    async def search_again(*arguments: object) -> SearchResult:
        searches.append(1)
        return SearchResult(texts={}, tried_count=10)

    monkeypatch.setattr(syntax_recovery, "search_repairs", search_again)
    limits = SearchLimits(max_candidates=10, max_seconds=60)
    project = make_failing_project(FailingCommand(), {"a.js": b"f(;\n"}, {"a.js": "f(;\n"})

    result = await recover_file(project, UnparsableFile(path="a.js"), limits)

    assert len(searches) == 1
    assert result.tried_count > 10


@pytest.mark.heavy
@pytest.mark.timeout(600)  # Go compiles its library again in each run
async def test_unparsable_go_is_healed_without_a_model(
    sandbox: BubblewrapSandbox, tmp_path: Path, require: Require
) -> None:
    require("go", shutil.which("go") is not None, "it is not on PATH")
    project = tmp_path / "project"
    project.mkdir()
    (project / "go.mod").write_text("module example.org/shelf\n\ngo 1.19\n")
    (project / "shelf.go").write_text(GO.replace("len(best)) {", "len(best) {"))
    (project / "shelf_test.go").write_text(GO_TESTS)

    result = await heal(
        project,
        HealOptions(settings=make_settings(tmp_path, 300), test="go test ./...", sandbox=sandbox, apply=True),
    )

    assert result.outcome == "healed", result.reason
    assert (project / "shelf.go").read_text() == GO

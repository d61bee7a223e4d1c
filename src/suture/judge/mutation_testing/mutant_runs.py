"""Generate mutants of a change, run them, and count those that a test notices.

A mutant's run has a time limit that follows from how long the suite took, because many mutants never end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from suture.core.records import Candidate, Language, UnmeasuredReason, Verdict, content_hash
from suture.judge import Suite, check_candidate
from suture.judge.coverage.coverage_run import (
    MAX_SOURCE_BYTES,
    find_changed_lines,
    find_reaching_tests,
    find_touched_by_file,
)
from suture.judge.mutation_testing.mutant_trials import MutantTrials
from suture.judge.trials.changed_code import ChangedCode, open_changed_code
from suture.judge.trials.tuning import MAX_WHOLE_SUITE_TESTS
from suture.judge.tuning import (
    MAX_GENERATED_MUTANTS,
    MAX_MUTATED_STATEMENTS,
    MIN_JUDGED_MUTANTS,
    MIN_MUTANT_TIMEOUT_S,
    MIN_NOTICED_SHARE,
    MUTANT_TIMEOUT_FACTOR,
    MUTANTS_PER_ROUND,
    MUTANTS_PER_YIELD,
    SELECTED_MUTANTS,
)
from suture.mutation import Mutant, OperatorName, apply_edits, generate_mutants, has_grammar
from suture.mutation.edits import encode_source
from suture.mutation.syntax_repair.tree_repair import tree_has_error
from suture.mutation.tree_sitter.tree_mutants import generate_tree_mutants
from suture.project.languages import LANGUAGES, is_source
from suture.project.workspace import apply_diff, decode_text, overlay_candidate, unified_diff

COMPILABLE_OPERATORS: tuple[OperatorName, ...] = (
    "comparison",
    "boolean_operator",
    "negation",
    "returned_condition",
    "arithmetic_operator",
    "off_by_one",
    "constant",
    "delete_statement",
)
"""Operators whose changes a compiler accepts in most cases."""
ALL_OPERATORS: tuple[OperatorName, ...] = (
    *COMPILABLE_OPERATORS,
    "variable",
    "attribute",
    "arguments",
    "return_value",
)
"""Operators that change or remove code. Mutants of those that add code are mostly equivalent."""


def find_mutable_lines(
    before: Mapping[str, bytes], after: Mapping[str, bytes], language: Language
) -> dict[str, tuple[range, ...]]:
    """Return path -> the code that mutants of a change are made from, as line ranges of `after`.

    In Python these are the touched statements, and in other languages the changed lines. A file with a syntax
    error has none, because the meaning of its changes is unknown. Paths without any are omitted.
    """
    if LANGUAGES[language].parsed:
        return find_touched_by_file(before, after)
    if not has_grammar(language):
        return {}
    lines_by_path: dict[str, tuple[range, ...]] = {}
    for path, content in sorted(after.items()):
        is_changed = before.get(path) != content and len(content) <= MAX_SOURCE_BYTES
        if not is_changed or not is_source(path, language):
            continue
        text = decode_text(content)
        if not tree_has_error(text, path, language):
            lines = find_changed_lines(decode_text(before.get(path, b"")), text)
            lines_by_path[path] = tuple(range(line, line + 1) for line in sorted(lines))
    return {path: ranges for path, ranges in lines_by_path.items() if ranges}


def generate_file_mutants(
    path: str, source: str, lines: Collection[int], language: Language
) -> Iterator[Mutant]:
    """Yield the mutants of some lines of a file.

    Args:
        lines: The lines that mutants may begin on, from 1.
    """
    facts = LANGUAGES[language]
    if facts.parsed:
        # An operator that fails costs its own mutants only: a measurement must not end a run that has a result.
        return generate_mutants(
            source, lines, operators=ALL_OPERATORS, on_fault=lambda operator, line, fault: None
        )
    if not facts.compiled:
        return generate_tree_mutants(source, path, language, lines, ALL_OPERATORS)
    raw = encode_source(source)  # the bytes in which the offsets of edits are counted
    mutants = generate_tree_mutants(source, path, language, lines, COMPILABLE_OPERATORS)
    return (mutant for mutant in mutants if not _deletes_return(mutant, raw))


def _deletes_return(mutant: Mutant, raw: bytes) -> bool:
    """Return whether a mutant deletes a `return`: compilers refuse a function that ends without one."""
    return any(
        not edit.text and raw[edit.start : edit.end].split()[:1] == [b"return"] for edit in mutant.edits
    )


def is_parsable_mutant(path: str, source: str, language: Language) -> bool:
    """Return whether a mutated file still parses; Python mutants always do."""
    return LANGUAGES[language].parsed or not tree_has_error(source, path, language)


MutantDetector = Callable[[Sequence[Mapping[str, str]]], Awaitable[list[bool]]]
"""Returns for each of some mutants, path -> text over the result, whether a test that passes on the result fails."""


@dataclass(frozen=True, kw_only=True)
class MutantRun:
    """One mutant of the result, and whether a test noticed it.

    Attributes:
        line: The line that it changes, from 1.
        diff: The change as a unified diff over the result.
        killed: Whether a test noticed it; `False` before it was run.
    """

    path: str
    line: int
    label: str
    diff: str
    killed: bool

    @property
    def description(self) -> str:
        """The file, the line and the change, such as `cart.py, line 12: < becomes <=`."""
        return f"{self.path}, {self.label}"


@dataclass(frozen=True, kw_only=True)
class MutationResult:
    """How well the tests guard the changed statements.

    Attributes:
        unmeasured: Why not all selected mutants were run; `None` if they were.
        generated: Number of mutants that the selection was made from.
        selected: Number of mutants to run, by the rule of `select_mutants`; `None` if the time ran out before
            they were selected.
        mutants: The mutants that were run: the first ones of the selection.
    """

    unmeasured: UnmeasuredReason | None = None
    generated: int = 0
    selected: int | None = None
    mutants: tuple[MutantRun, ...] = ()

    @property
    def killed(self) -> int:
        """The number of mutants that a passing test noticed."""
        return sum(run.killed for run in self.mutants)

    @property
    def missed(self) -> tuple[str, ...]:
        """The mutants that were run and that no test noticed, in words."""
        return tuple(run.description for run in self.mutants if not run.killed)

    @property
    def shows_weak_tests(self) -> bool:
        """Whether the tests notice few of the deliberate mistakes in the changed lines, of those that were tried."""
        count = len(self.mutants)
        return count >= MIN_JUDGED_MUTANTS and self.killed < MIN_NOTICED_SHARE * count

    @property
    def min_score(self) -> float | None:
        """The share of the selected mutants that a test is known to notice; `None` if there are none.

        A mutant that was not run counts as not noticed, so measuring less never raises the score.
        """
        if self.selected == 0:
            return None
        return self.killed / self.selected if self.selected else 0.0


@dataclass(frozen=True, kw_only=True)
class MutantSelection:
    """The mutants of a change that are to be run.

    Attributes:
        generated: Number of mutants that they were selected from.
    """

    generated: int
    mutants: tuple[MutantRun, ...]


async def select_mutants(
    after: Mapping[str, bytes], statements: Mapping[str, Sequence[range]], language: Language
) -> MutantSelection:
    """Return the mutants to run, which follow from the change alone.

    Statements and mutants are sorted by their hashes. So the first ones are a sample that a candidate's author could
    not choose, and a replay finds the same ones.

    Args:
        statements: Path -> changed code as line ranges, as returned by `find_mutable_lines`.
    """
    pool: dict[str, tuple[str, Mutant]] = {}
    for path, lines in sorted(_choose_lines(after, statements).items()):
        for mutant in generate_file_mutants(path, decode_text(after[path]), lines, language):
            if len(pool) >= MAX_GENERATED_MUTANTS:
                break
            edits = [[edit.start, edit.end, edit.text] for edit in mutant.edits]
            pool.setdefault(content_hash([path, edits]), (path, mutant))
            if len(pool) % MUTANTS_PER_YIELD == 0:
                await asyncio.sleep(0)
    selected: list[MutantRun] = []
    for key in sorted(pool):
        path, mutant = pool[key]
        source = decode_text(after[path])
        mutated = apply_edits(source, mutant.edits)
        if not is_parsable_mutant(path, mutated, language):
            continue
        diff = unified_diff({path: _encode(source)}, {path: _encode(mutated)})
        selected.append(MutantRun(path=path, line=mutant.line, label=mutant.label, diff=diff, killed=False))
        if len(selected) == SELECTED_MUTANTS:
            break
    return MutantSelection(generated=len(pool), mutants=tuple(selected))


def _encode(text: str) -> bytes:
    """Encode a file's content, in which bytes that are not UTF-8 were decoded to surrogates."""
    return text.encode("utf-8", "surrogateescape")


def _choose_lines(
    after: Mapping[str, bytes], statements: Mapping[str, Sequence[range]]
) -> dict[str, frozenset[int]]:
    """Return path -> lines of the statements that mutants are generated from."""
    keyed_statements: list[tuple[str, str, range]] = []
    for path, ranges in statements.items():
        text = decode_text(after[path]).split("\n")
        for lines in ranges:
            key = content_hash([path, text[lines.start - 1 : lines.stop - 1], lines.start])
            keyed_statements.append((key, path, lines))
    chosen: dict[str, frozenset[int]] = {}
    for _, path, lines in sorted(keyed_statements, key=lambda entry: entry[0])[:MAX_MUTATED_STATEMENTS]:
        chosen[path] = chosen.get(path, frozenset()) | frozenset(lines)
    return chosen


async def measure_mutation_score(
    after: Mapping[str, bytes],
    statements: Mapping[str, Sequence[range]],
    find_noticed: MutantDetector,
    *,
    max_mutants: int,
    timeout_s: float,
    language: Language,
) -> MutationResult:
    """Run mutants of the changed code.

    Args:
        statements: Path -> changed code as line ranges, as returned by `find_mutable_lines`.
        timeout_s: Wall-clock seconds; mutants that were not run by then count as not noticed.
    """
    selection: MutantSelection | None = None
    done: list[MutantRun] = []
    try:
        async with asyncio.timeout(timeout_s):
            selection = await select_mutants(after, statements, language)
            runs = selection.mutants[:max_mutants]
            # Round by round, so that finished rounds count when the time runs out.
            for start in range(0, len(runs), MUTANTS_PER_ROUND):
                done += await replay_mutants(after, runs[start : start + MUTANTS_PER_ROUND], find_noticed)
    except TimeoutError:
        pass
    if selection is None:
        return MutationResult(unmeasured="no_time")
    selected = len(selection.mutants)
    unmeasured: UnmeasuredReason | None = None
    if not selected:
        is_supported = LANGUAGES[language].parsed or has_grammar(language)
        reason: UnmeasuredReason = "no_changed_code" if is_supported else "unsupported_language"
        unmeasured = "no_mutants" if statements else reason
    elif len(done) < selected and max_mutants == 0:
        unmeasured = "disabled"
    elif len(done) < selected:
        unmeasured = "mutant_limit" if len(done) == max_mutants else "no_time"
    return MutationResult(
        unmeasured=unmeasured, generated=selection.generated, selected=selected, mutants=tuple(done)
    )


async def replay_mutants(
    after: Mapping[str, bytes], runs: Sequence[MutantRun], find_noticed: MutantDetector
) -> list[MutantRun]:
    """Return the same mutants with what the tests say about them now.

    Raises:
        DiffDoesNotApply: A mutant's diff does not apply to the result.
    """
    replayed: list[MutantRun] = []
    for start in range(0, len(runs), MUTANTS_PER_ROUND):
        chosen = runs[start : start + MUTANTS_PER_ROUND]
        noticed = await find_noticed([_make_files(after, run) for run in chosen])
        replayed += [replace(run, killed=killed) for run, killed in zip(chosen, noticed, strict=True)]
    return replayed


def _make_files(after: Mapping[str, bytes], run: MutantRun) -> dict[str, str]:
    """Return the file that a mutant changes, path -> text."""
    changed = apply_diff({run.path: _encode(decode_text(after[run.path]))}, run.diff)
    return {run.path: changed[run.path].decode("utf-8", "surrogateescape")}


@asynccontextmanager
async def open_mutant_detector(
    suite: Suite,
    files: Mapping[str, str],
    verdict: Verdict,
    fixed: Collection[str] = (),
    reaching: Collection[str] | None = None,
    code: ChangedCode | None = None,
) -> AsyncIterator[MutantDetector]:
    """Yield a function that says whether a check that passes on some files fails on mutants of them.

    With pytest, mutants are tried in a process that has collected the tests, if that is possible.

    Args:
        files: The change that passes, path -> text over the project's own files.
        fixed: Ids of the tests that the change fixed.
        reaching: Ids of the tests that can reach the changed code, if they are known: the others need not run.
        code: The changed code, if it is open already.
    """
    # Each mutant's run has shorter limits than the suite, because many never end.
    mutant_suite = _shorten_timeouts(suite, verdict)
    runs = _MutantRuns(suite, mutant_suite, files, verdict, fixed, reaching)
    all_tests = runs.choose_all_tests()
    async with AsyncExitStack() as stack:
        if code is None:
            code = await stack.enter_async_context(open_changed_code(suite, files, fixed, all_tests or ()))
        trials = None
        if code is not None:
            trials = MutantTrials(code, fixed, all_tests, mutant_suite.settings.test_timeout_s)

        async def find_noticed(mutants: Sequence[Mapping[str, str]]) -> list[bool]:
            answers = [None] * len(mutants) if trials is None else await trials.find_noticed(mutants)

            async def complete(answer: bool | None, mutant: Mapping[str, str]) -> bool:
                return await runs.is_noticed(mutant) if answer is None else answer

            return await asyncio.gather(*map(complete, answers, mutants))

        yield find_noticed


class _MutantRuns:
    """Runs a suite on mutants of some files.

    Tests that the change fixed run first, because they execute it. If one of them notices the mutant, the
    others need not run. Only those that also pass without the others run first, and only with pytest: another
    command may not be able to run some of its tests. Of a large suite, only the tests that run a changed function run
    in addition, if nothing but the command judges the task. They are selected when first needed.

    Args:
        mutant_suite: The suite with the time limits of a mutant's run.
    """

    def __init__(
        self,
        suite: Suite,
        mutant_suite: Suite,
        files: Mapping[str, str],
        verdict: Verdict,
        fixed: Collection[str],
        reaching: Collection[str] | None,
    ) -> None:
        self._suite, self._mutant_suite, self._files, self._verdict = suite, mutant_suite, files, verdict
        self._fixed, self._reaching = fixed, reaching
        self._is_compiled = LANGUAGES[suite.task.language].compiled
        command = suite.command
        # The task's other checks may notice a mutant too.
        is_only_source = not (suite.task.checks or suite.calls or suite.smoke or suite.diagnostics)
        self._is_pytest = command is not None and command.is_pytest
        self._is_only_pytest = self._is_pytest and is_only_source
        self._lock = asyncio.Lock()
        self._first: frozenset[str] | None = None
        self._last: tuple[frozenset[str] | None] | None = None

    def choose_all_tests(self) -> frozenset[str] | None:
        """Return the tests one of which notices a mutant that anything notices; `None` if that is not known yet."""
        passed = self._verdict.passed
        if self._is_only_pytest and self._reaching is not None:
            return passed & frozenset(self._reaching)
        return passed if self._is_only_pytest and len(passed) <= MAX_WHOLE_SUITE_TESTS else None

    async def is_noticed(self, mutant: Mapping[str, str]) -> bool:
        """Return whether a check that passes on the files fails on further changed files, path -> text."""
        suite, changed = self._mutant_suite, {**self._files, **mutant}
        first_tests = await self._get_first_tests()
        # Without a command there are no first tests, and nothing could run them.
        if first_tests and first_tests - await _find_passing(suite, changed, first_tests, options="-x"):
            return True
        last_tests = await self._get_last_tests(first_tests)
        if last_tests is not None:
            return not last_tests <= await _find_passing(suite, changed, last_tests, options="-x")
        verdict = await check_candidate(Candidate(files=changed, origin="repair"), suite)
        lost = self._verdict.passed - verdict.passed
        if self._is_compiled:
            # Where the compiler refuses the mutant no test runs, so no test noticed it.
            lost -= {outcome.check_id for outcome in verdict.outcomes if outcome.status == "missing"}
        return bool(lost)

    async def _get_first_tests(self) -> frozenset[str]:
        if not self._is_pytest or not self._fixed:
            return frozenset()
        async with self._lock:
            if self._first is None:
                self._first = await _find_passing(self._mutant_suite, self._files, self._fixed)
            return self._first

    async def _get_last_tests(self, first_tests: frozenset[str]) -> frozenset[str] | None:
        """Return the tests that run on a mutant which the first ones do not notice; `None` for the whole suite."""
        async with self._lock:
            if self._last is None:
                self._last = (await self._find_last_tests(first_tests),)
            return self._last[0]

    async def _find_last_tests(self, first_tests: frozenset[str]) -> frozenset[str] | None:
        verdict, reaching = self._verdict, self._reaching
        if not self._is_only_pytest:
            return None
        if reaching is None and len(verdict.passed) > MAX_WHOLE_SUITE_TESTS:
            reaching = await find_reaching_tests(self._suite, self._files, verdict)
        if reaching is None:
            return None
        others = (verdict.passed & frozenset(reaching)) - first_tests
        return await _find_passing(self._mutant_suite, self._files, others)


def _shorten_timeouts(suite: Suite, verdict: Verdict) -> Suite:
    """Return the suite with the time limits of a mutant's run."""
    timeout_s = max(MIN_MUTANT_TIMEOUT_S, MUTANT_TIMEOUT_FACTOR * verdict.wall_s)
    limits = {
        "test_timeout_s": min(suite.settings.test_timeout_s, timeout_s),
        "check_timeout_s": min(suite.settings.check_timeout_s, timeout_s),
    }
    settings = suite.settings.model_copy(update=limits)
    command = suite.command.copy_with_settings(settings) if suite.command is not None else None
    smoke = replace(suite.smoke, settings=settings) if suite.smoke is not None else None
    calls = replace(suite.calls, settings=settings) if suite.calls is not None else None
    # The scan is off: the change itself was allowed to run, perhaps by a person. A mutant that the scan
    # refused would count as noticed, and a replay, which has no scan, would compute another score.
    return replace(suite, settings=settings, command=command, smoke=smoke, calls=calls, vet=None)


async def _find_passing(
    suite: Suite, files: Mapping[str, str], tests: Collection[str], options: str = ""
) -> frozenset[str]:
    """Return those of some tests that pass when only they run.

    Args:
        options: Options of pytest, such as `-x` if it is enough to know that a test fails.
    """
    assert suite.command is not None
    if not tests:
        return frozenset()
    project_files = overlay_candidate(suite.task.files, files)
    outcomes = await suite.command.run_selected(project_files, tests, options=options)
    return frozenset(outcome.check_id for outcome in outcomes if outcome.passed)

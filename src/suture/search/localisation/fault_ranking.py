"""Ranks the lines that may be at fault, by coverage, tracebacks, and the functions that tests call.

Ochiai: Abreu et al., PRDC 2006. DStar with * = 2: Wong et al., IEEE Trans. Reliability 63(1), 2014.

What the exceptions of failing tests say about the kind of mistake.

For example, `'<' not supported between` is about a comparison.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from suture.core.ledger.kinds import SuspectLine
from suture.core.records import CheckOutcome, Counterexample
from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.baseline import trace_tests
from suture.judge.trials.trial_records import Spectrum
from suture.mutation import Mutant, OperatorName
from suture.mutation.python.python_tree import PythonTree, body_lines, parse_python_tree
from suture.project.python_source.parsing import first_line
from suture.project.python_source.scopes import FUNCTIONS
from suture.search import tuning
from suture.search.tuning import MIN_CLUE_SHARE, OFF_TRACEBACK_FACTOR, OTHER_PART_FACTOR

WORD = re.compile(r"[A-Za-z_$][\w$]{2,}")
"""A name of at least three characters. The minimum is chosen by judgement; not measured."""
MAX_RANKED_FRAMES = 8
"""Innermost frames of a traceback that count. Chosen by judgement; not measured."""


def ochiai(failed: int, passed: int, all_failed: int) -> float:
    """Return the suspiciousness of a line that `failed` failing and `passed` passing tests ran."""
    denominator = math.sqrt(all_failed * (failed + passed))
    return failed / denominator if denominator else 0.0


def dstar(failed: int, passed: int, all_failed: int) -> float:
    """Return the suspiciousness of the same line by DStar.

    It is infinite if all failing tests ran the line and no passing one did.
    """
    denominator = passed + (all_failed - failed)
    return failed**2 / denominator if denominator else math.inf if failed else 0.0


def rank_suspects(spectrum: Spectrum, texts: Mapping[str, str]) -> tuple[SuspectLine, ...]:
    """Return the lines that failing tests ran, the most suspicious first."""
    suspects: list[SuspectLine] = []
    counts = _run_counts(spectrum, texts)
    parsed = {path: parse_python_tree(texts[path]) for path in dict.fromkeys(path for path, _ in counts)}
    trees = {path: tree for path, tree in parsed.items() if tree is not None}
    frames = _frame_shares(spectrum)
    called_functions = {(call.path, call.line) for call in spectrum.calls}  # each by its first line
    all_failed = max(1, len(spectrum.failing))
    dstars = {location: dstar(failed, passed, all_failed) for location, (failed, passed) in counts.items()}
    max_finite = max((value for value in dstars.values() if value != math.inf), default=1.0) or 1.0
    for (path, line), (failed, passed) in counts.items():
        # DStar has no upper limit. Finite values are scaled to at most a half, infinite ones count as 1.
        scaled_dstar = 1.0 if dstars[path, line] == math.inf else dstars[path, line] / (2 * max_finite)
        ochiai_score = ochiai(failed, passed, all_failed)
        function = trees[path].innermost_function(line) if path in trees else None
        is_called = function is not None and (path, first_line(function)) in called_functions
        by_coverage = (1 - tuning.DSTAR_SHARE) * ochiai_score + tuning.DSTAR_SHARE * scaled_dstar
        score = tuning.SPECTRUM_WEIGHT * by_coverage
        score += tuning.FRAME_WEIGHT * frames.get((path, line), 0.0) + tuning.CALLED_WEIGHT * is_called
        suspect = SuspectLine(
            path=path,
            line=line,
            function=function.name if function is not None else "",
            score=score,
            ochiai=ochiai_score,
            dstar=scaled_dstar,
        )
        suspects.append(suspect)
    return tuple(sorted(suspects, key=lambda suspect: (-suspect.score, suspect.path, suspect.line)))


def score_lines(
    suspects: tuple[SuspectLine, ...], spectrum: Spectrum, texts: Mapping[str, str]
) -> dict[str, dict[int, float]]:
    """Return path -> line -> score for every line that may be changed: whole statements, headers, imports."""
    scores: dict[str, dict[int, float]] = {}
    for suspect in suspects:
        scores.setdefault(suspect.path, {})[suspect.line] = suspect.score
    top = max((suspect.score for suspect in suspects), default=1.0)
    attributes = _attributes_read_at_failure(spectrum, texts)
    for path, text in texts.items():
        # Otherwise no line of the file gets a score. Of a large project, the tests run few files.
        is_known = path in scores or not suspects or any(name in text for name in attributes)
        tree = parse_python_tree(text) if is_known else None
        if tree is None:
            continue
        line_scores, imported = scores.setdefault(path, {}), spectrum.import_lines.get(path, frozenset())
        if not suspects:  # no test ran a line: the lines that ran on import are all that is known
            line_scores.update(dict.fromkeys(imported, 1.0))
        _spread_over_statements(tree, line_scores)
        _add_read_methods(tree, line_scores, attributes, top)
        if line_scores:
            for line in imported:
                line_scores.setdefault(line, tuning.IMPORTED_FACTOR * max(line_scores.values()))
        _add_bindings(tree, line_scores)
    return {path: line_scores for path, line_scores in scores.items() if line_scores}


def _attributes_read_at_failure(spectrum: Spectrum, texts: Mapping[str, str]) -> frozenset[str]:
    """Return attributes that are read, and not called, on the innermost lines of tracebacks."""
    locations = {test.frames[-1] for test in spectrum.failing if test.frames}
    attributes: set[str] = set()
    for path in {path for path, _ in locations} & texts.keys():
        tree = parse_python_tree(texts[path])
        lines = {line for frame_path, line in locations if frame_path == path}
        for node in ast.walk(tree.module) if tree is not None else ():
            if isinstance(node, ast.Attribute) and node.lineno in lines and tree is not None:
                parent = tree.parent(node)
                if not (isinstance(parent, ast.Call) and parent.func is node):
                    attributes.add(node.attr)
    return frozenset(attributes)


def _add_read_methods(
    tree: PythonTree, line_scores: dict[int, float], attributes: frozenset[str], top: float
) -> None:
    """Suspect the first lines of methods that are read like values: a decorator may be missing.

    Without the decorator the method does not run, so that coverage does not show it.
    """
    for node in tree.functions_in_order if attributes else ():
        if node.name in attributes and not node.decorator_list:
            line_scores[node.lineno] = max(line_scores.get(node.lineno, 0.0), tuning.HEADER_FACTOR * top)


def _add_bindings(tree: PythonTree, line_scores: dict[int, float]) -> None:
    """Suspect a module-level or class-level binding nearly as much as the worst line that reads its name.

    It ran on import, before any test. Of all such lines it is the one whose value a failing test used.
    """
    reads: dict[str, float] = {}
    bindings: list[tuple[ast.stmt, set[str]]] = []
    for node in ast.walk(tree.module):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            if node.lineno in line_scores and tree.enclosing_function(node) is not None:
                name = node.id if isinstance(node, ast.Name) else node.attr
                reads[name] = max(reads.get(name, 0.0), line_scores[node.lineno])
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and tree.enclosing_function(node) is None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bindings.append((node, {target.id for target in targets if isinstance(target, ast.Name)}))
    for node, names in bindings:
        worst = max((reads.get(name, 0.0) for name in names), default=0.0)
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        score = tuning.BINDING_FACTOR * worst * min(1.0, tuning.TABLE_LINES / len(lines))
        for line in lines if worst else ():
            line_scores[line] = max(line_scores.get(line, 0.0), score)


def _spread_over_statements(tree: PythonTree, line_scores: dict[int, float]) -> None:
    """Give all lines of a statement the score of its worst line, and a function's header nearly so."""
    for node in ast.walk(tree.module):
        if isinstance(node, FUNCTIONS):
            worst = max((line_scores.get(line, 0.0) for line in body_lines(node)), default=0.0)
            if worst:
                for line in range(first_line(node), node.body[0].lineno):
                    line_scores[line] = max(line_scores.get(line, 0.0), tuning.HEADER_FACTOR * worst)
        elif isinstance(node, ast.stmt) and not isinstance(node, ast.ClassDef):
            body = getattr(node, "body", None)
            last_line = (
                body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno or node.lineno
            )
            span = range(node.lineno, max(last_line, node.lineno) + 1)
            worst = max((line_scores.get(line, 0.0) for line in span), default=0.0)
            if worst:
                line_scores.update(dict.fromkeys(span, worst))


def _run_counts(spectrum: Spectrum, texts: Mapping[str, str]) -> dict[tuple[str, int], tuple[int, int]]:
    """Return `(path, line)` -> `(failing tests, passing tests)` that ran the line.

    Lines that no failing test ran are left out.
    """
    counts: dict[tuple[str, int], tuple[int, int]] = {}
    for test in spectrum.tests:
        if test.outcome == "skipped":
            continue
        for path, lines in test.lines.items():
            for line in lines if path in texts else ():
                failed, passed = counts.get((path, line), (0, 0))
                counts[path, line] = (failed + test.failed, passed + (not test.failed))
    return {location: count for location, count in counts.items() if count[0]}


def _frame_shares(spectrum: Spectrum) -> dict[tuple[str, int], float]:
    """Return `(path, line)` -> its weight in tracebacks of failing tests. The innermost frame has weight 1."""
    shares: dict[tuple[str, int], float] = {}
    for test in spectrum.failing:
        for depth, frame in enumerate(reversed(test.frames[-MAX_RANKED_FRAMES:])):
            shares[frame] = max(shares.get(frame, 0.0), 1.0 / (1 + depth))
    return shares


def score_named_lines(
    texts: Mapping[str, str], outcomes: Sequence[CheckOutcome]
) -> tuple[tuple[SuspectLine, ...], dict[str, dict[int, float]]]:
    """Score lines without coverage, by the names in the messages of failing tests and the lines in them.

    Return `(suspects, scores)`: the lines, the most suspicious first, and path -> line -> score.
    """
    counterexamples = [o.counterexample for o in outcomes if o.counterexample is not None]
    scores = {path: _score_file(path, text, counterexamples) for path, text in texts.items()}
    suspects = [
        SuspectLine(path=path, line=line, function="", score=score)
        for path, line_scores in scores.items()
        for line, score in line_scores.items()
    ]
    return tuple(sorted(suspects, key=lambda suspect: (-suspect.score, suspect.path, suspect.line))), scores


def _score_file(path: str, text: str, counterexamples: Sequence[Counterexample]) -> dict[int, float]:
    """Return line -> score for all lines of a file, and for the line after the last one."""
    messages = " ".join(f"{c.check_id} {c.call} {c.exception} {c.actual}" for c in counterexamples)
    names_in_messages = set(WORD.findall(messages))
    lines = text.splitlines()
    reported = [c.line for c in counterexamples if c.file == path and c.line]
    reported += [int(line) for line in re.findall(rf"{re.escape(path)}:(\d{{1,9}})\b", messages)]
    is_named = bool(names_in_messages & set(WORD.findall(text)) or reported)
    default = tuning.SAME_FILE_SUSPICION if is_named else tuning.OTHER_FILE_SUSPICION
    scores: dict[int, float] = {}
    for number in range(1, len(lines) + 2):
        is_near = any(abs(number - line) <= tuning.NEARBY_LINES for line in reported)
        names = set(WORD.findall(lines[number - 1])) if number <= len(lines) else set()
        scores[number] = tuning.NAMED_SUSPICION if is_near or names & names_in_messages else default
    return scores


_located: WeakKeyDictionary[TestCommand, dict[frozenset[str], tuple[SuspectLine, ...]]] = WeakKeyDictionary()
"""Test command -> failing tests -> the lines that they run. A command belongs to files that do not change."""


async def locate_failing_lines(
    command: TestCommand, texts: Mapping[str, str], failing: Collection[str], timeout_s: float
) -> tuple[SuspectLine, ...]:
    """Return the lines that the failing tests run, the most suspicious first.

    The failing tests and some passing ones run with tracing, once for each command.

    Args:
        command: A collected pytest command.
        texts: Path -> text of the files that may change.
        timeout_s: Wall-clock seconds for all of it.

    Raises:
        SandboxError: The sandbox failed.
    """
    known = _located.setdefault(command, {})
    key = frozenset(failing)
    if key not in known:
        known[key] = rank_suspects(await trace_tests(command, texts, failing, timeout_s), texts)
    return known[key]


FACTORS_BY_EXCEPTION: Mapping[str, Mapping[OperatorName, float]] = {
    r"unsupported operand type\(s\) for (\S+?)(?: or pow\(\))?:": {
        "arithmetic_operator": 3.0, "wrap_in_call": 1.5,
    },
    r"bad operand type for unary (\S):": {"sign_change": 3.0, "wrap_in_call": 1.5},
    r"TypeError: '(\S+)' not supported between": {"comparison": 3.0, "wrap_in_call": 1.5},
    r"'(?:function|method|builtin_function_or_method|property)'|<bound method|<function |not callable": {
        "decorator": 5.0, "attribute_or_name": 1.5,
    },
    r"TypeError: .*missing \d+ required": {
        "decorator": 3.0, "missing_argument": 3.0, "reused_argument": 3.0,
    },
    r"TypeError: .*(?:takes .* arguments?|unexpected keyword|multiple values)": {
        "decorator": 3.0, "arguments": 2.0, "reused_argument": 1.5,
    },
    r"NameError: name '(\w+)' is not defined|ReferenceError: (\w+) is not defined": {
        "undefined_name": 3.0, "missing_initialisation": 3.0, "exception_class": 3.0,
    },
    r"AttributeError: .*has no attribute '(\w+)'": {
        "unknown_attribute": 2.0, "attribute": 2.0,
    },
    r"TypeError: (?:\w+\.)*(\w+) is not a function": {
        "called_name": 2.0, "wrap_in_call": 1.5, "unwrap_call": 1.5,
    },
    r"TypeError: .*(?:is not iterable|cannot unpack|to unpack)": {"iteration": 3.0, "append_element": 3.0},
    r"'?NoneType'?|assert None\b": {
        "missing_return": 3.0, "return_value": 3.0, "bare_return": 3.0, "final_return": 3.0,
        "reused_value": 2.5, "reused_argument": 2.0, "append_element": 2.0, "truth_test": 1.5, "conversion": 1.5,
    },
    # Matches a boolean where a number is expected.
    r"AssertionError: assert (?:True|False) == -?\d": {
        "sign_change": 3.0, "negation": 2.0, "boolean_operator": 2.0, "comparison": 1.5, "return_value": 1.5,
    },
    r"IndexError|StopIteration|(?:index|bounds) out of range|of (?:undefined|null)\b|Invalid array": {
        "off_by_one": 1.6, "constant": 1.4, "sequence_part": 1.5, "comparison": 1.3, "condition": 1.5,
    },
    r"can only concatenate|must be \w+, not|expected str|a bytes-like object": {"conversion": 3.0},
    r"UnicodeDecodeError|UnicodeEncodeError": {"missing_argument": 3.0},
    r"KeyError": {"subscript_key": 2.5, "condition": 1.5, "called_name": 1.3},
    r"RecursionError|Timeout|Maximum call stack|stack overflow": {
        "loop_control": 2.0, "comparison": 1.5, "guard": 2.0, "accumulation": 1.5, "arithmetic_operator": 1.5,
    },
    r"DID NOT RAISE|DID NOT WARN": {
        "negation": 1.5, "comparison": 1.3, "boolean_operator": 1.3, "exception_class": 1.5,
    },
    r"UnboundLocalError|before initialization": {
        "missing_assignment": 2.5, "missing_initialisation": 3.0, "empty_iteration": 2.0,
        "move_statement": 1.5,
    },
}  # fmt: skip
"""Pattern of an exception -> operator -> factor on its changes.

A group of a pattern is an operator or a name: a change that replaces exactly that gets the full factor. The
factors are chosen by judgement and not measured.
"""


@dataclass(frozen=True, kw_only=True)
class Clue:
    """A hint at the kind of mistake.

    Attributes:
        factors: Mutation operator -> factor on the score of its changes.
        part: The operator or name in the exception; empty where there is none.
        places: `(path, line)` of all frames in the tracebacks.
        share: Share of the failing tests that show the exception.
    """

    factors: Mapping[OperatorName, float]
    part: str
    places: frozenset[tuple[str, int]]
    share: float


def find_clues(spectrum: Spectrum) -> tuple[Clue, ...]:
    """Return the clues in the exceptions of the failing tests, each once."""
    failing = spectrum.failing
    counts: Counter[tuple[str, str]] = Counter()
    places: dict[tuple[str, str], set[tuple[str, int]]] = {}
    for test in failing:
        message = "Timeout" if test.outcome == "timeout" else test.error
        for pattern in FACTORS_BY_EXCEPTION:
            match = re.search(pattern, message)
            if match is not None:
                key = (pattern, next((group for group in match.groups() if group), ""))
                counts[key] += 1
                places.setdefault(key, set()).update(test.frames)
    return tuple(
        Clue(
            factors=FACTORS_BY_EXCEPTION[pattern],
            # The operator of `+=` is `+`, whereas that of `<=` is whole.
            part=part.rstrip("=") if pattern.startswith("unsupported") else part,
            places=frozenset(places[pattern, part]),
            share=count / len(failing),
        )
        for (pattern, part), count in counts.items()
        if count >= MIN_CLUE_SHARE * len(failing)
    )


def clue_factor(mutant: Mutant, path: str, source: bytes, clues: Sequence[Clue]) -> float:
    """Return the factor on a change's score by the clues; 1 where no clue is about its operator."""
    best = 1.0
    for clue in clues:
        if mutant.operator not in clue.factors:
            continue
        factor = clue.factors[mutant.operator]
        if clue.part and not _replaces_part(mutant, source, clue.part):
            factor = 1.0 + (factor - 1.0) * OTHER_PART_FACTOR
        # A missing decorator shows where the function is used, and not at its definition.
        if clue.places and (path, mutant.line) not in clue.places and mutant.operator != "decorator":
            factor = 1.0 + (factor - 1.0) * OFF_TRACEBACK_FACTOR
        # By the square root, a clue of a few tests still counts. Chosen by judgement; not measured.
        best = max(best, 1.0 + (factor - 1.0) * clue.share**0.5)
    return best


def _replaces_part(mutant: Mutant, source: bytes, part: str) -> bool:
    """Return whether a change replaces exactly an operator, or code that contains a name."""
    raw = b" ".join(source[edit.start : edit.end] for edit in mutant.edits)
    replaced = raw.decode("utf-8", "replace").strip()
    if part.isidentifier():
        return part in replaced
    return replaced.rstrip("=") == part.rstrip("=")  # `+=` raises an exception about `+=` or about `+`

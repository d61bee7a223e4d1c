"""Ranks the lines that may be at fault, by coverage, tracebacks, and the functions that tests call.

Ochiai: Abreu et al., PRDC 2006. DStar with * = 2: Wong et al., IEEE Trans. Reliability 63(1), 2014.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence

from suture.core.ledger.kinds import SuspectLine
from suture.core.records import CheckOutcome, Counterexample
from suture.judge.trials.trial_records import Spectrum
from suture.mutation.python.python_tree import FUNCTIONS, Function, PythonTree, parse_python_tree
from suture.project.python_source.parsing import first_line
from suture.search.tuning import (
    BINDING_FACTOR,
    CALLED_WEIGHT,
    FRAME_WEIGHT,
    HEADER_FACTOR,
    IMPORTED_FACTOR,
    NAMED_SUSPICION,
    NEARBY_LINES,
    OTHER_FILE_SUSPICION,
    SAME_FILE_SUSPICION,
    SPECTRUM_WEIGHT,
    TABLE_LINES,
)

WORD = re.compile(r"[A-Za-z_$][\w$]{2,}")


def ochiai(failed: int, passed: int, all_failed: int) -> float:
    """Return the suspiciousness of a line that `failed` failing and `passed` passing tests ran."""
    denominator = math.sqrt(all_failed * (failed + passed))
    return failed / denominator if denominator else 0.0


def dstar(failed: int, passed: int, all_failed: int) -> float:
    """Return the same by DStar; infinite where every failing test and no passing one ran the line."""
    denominator = passed + (all_failed - failed)
    return failed**2 / denominator if denominator else math.inf if failed else 0.0


def rank_suspects(spectrum: Spectrum, texts: Mapping[str, str]) -> tuple[SuspectLine, ...]:
    """Return the lines that failing tests ran, the most suspicious first.

    Args:
        spectrum: What the tests did on the unchanged code.
        texts: Path -> text of the files that may be at fault.
    """
    trees = {path: tree for path, text in texts.items() if (tree := parse_python_tree(text)) is not None}
    suspects: list[SuspectLine] = []
    counts = _run_counts(spectrum, texts)
    frames = _frame_shares(spectrum)
    called = {(call.path, call.line) for call in spectrum.calls}
    all_failed = max(1, len(spectrum.failing))
    stars = {place: dstar(failed, passed, all_failed) for place, (failed, passed) in counts.items()}
    top = max((star for star in stars.values() if star != math.inf), default=1.0) or 1.0
    for (path, line), (failed, passed) in counts.items():
        star = 1.0 if stars[path, line] == math.inf else stars[path, line] / (2 * top)
        share = ochiai(failed, passed, all_failed)
        function = _innermost_function(trees[path], line) if path in trees else None
        is_called = function is not None and (path, first_line(function)) in called
        score = SPECTRUM_WEIGHT * (0.8 * share + 0.2 * star)
        score += FRAME_WEIGHT * frames.get((path, line), 0.0) + CALLED_WEIGHT * is_called
        name = function.name if function is not None else ""
        suspects.append(
            SuspectLine(path=path, line=line, function=name, score=score, ochiai=share, dstar=star)
        )
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
        tree = parse_python_tree(text)
        if tree is None:
            continue
        own, imported = scores.setdefault(path, {}), spectrum.import_lines.get(path, frozenset())
        if not suspects:  # no test ran a line: the lines that ran on import are all that is known
            own.update(dict.fromkeys(imported, 1.0))
        _spread_over_statements(tree, own)
        _add_read_methods(tree, own, attributes, top)
        if own:
            for line in imported:
                own.setdefault(line, IMPORTED_FACTOR * max(own.values(), default=top))
        _add_bindings(tree, own)
    return {path: own for path, own in scores.items() if own}


def _attributes_read_at_failure(spectrum: Spectrum, texts: Mapping[str, str]) -> frozenset[str]:
    """Return attributes that are read, and not called, on the innermost lines of tracebacks."""
    places = {test.frames[-1] for test in spectrum.failing if test.frames}
    found: set[str] = set()
    for path in {path for path, _ in places} & texts.keys():
        tree, lines = parse_python_tree(texts[path]), {line for where, line in places if where == path}
        for node in ast.walk(tree.module) if tree is not None else ():
            if isinstance(node, ast.Attribute) and node.lineno in lines and tree is not None:
                parent = tree.parent(node)
                if not (isinstance(parent, ast.Call) and parent.func is node):
                    found.add(node.attr)
    return frozenset(found)


def _add_read_methods(
    tree: PythonTree, own: dict[int, float], attributes: frozenset[str], top: float
) -> None:
    """Suspect the first lines of methods that are read like values: a decorator may be missing.

    Without the decorator the method does not run, so that coverage does not show it.
    """
    for node in tree.functions_in_order if attributes else ():
        if node.name in attributes and not node.decorator_list:
            own[node.lineno] = max(own.get(node.lineno, 0.0), HEADER_FACTOR * top)


def _add_bindings(tree: PythonTree, own: dict[int, float]) -> None:
    """Suspect a module-level or class-level binding nearly as much as the worst line that reads its name.

    It ran on import, before any test. Of all such lines it is the one whose value a failing test used.
    """
    reads: dict[str, float] = {}
    bindings: list[tuple[ast.stmt, set[str]]] = []
    for node in ast.walk(tree.module):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            if node.lineno in own and tree.enclosing_function(node) is not None:
                name = node.id if isinstance(node, ast.Name) else node.attr
                reads[name] = max(reads.get(name, 0.0), own[node.lineno])
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and tree.enclosing_function(node) is None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bindings.append((node, {target.id for target in targets if isinstance(target, ast.Name)}))
    for node, names in bindings:
        worst = max((reads.get(name, 0.0) for name in names), default=0.0)
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        score = BINDING_FACTOR * worst * min(1.0, TABLE_LINES / len(lines))
        for line in lines if worst else ():
            own[line] = max(own.get(line, 0.0), score)


def _spread_over_statements(tree: PythonTree, own: dict[int, float]) -> None:
    """Give all lines of a statement the score of its worst line, and a function's header nearly so."""
    for node in ast.walk(tree.module):
        if isinstance(node, FUNCTIONS):
            worst = max((own.get(line, 0.0) for line in _body_lines(node)), default=0.0)
            if worst:
                for line in range(first_line(node), node.body[0].lineno):
                    own[line] = max(own.get(line, 0.0), HEADER_FACTOR * worst)
        elif isinstance(node, ast.stmt) and not isinstance(node, ast.ClassDef):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno or node.lineno
            span = range(node.lineno, max(last, node.lineno) + 1)
            worst = max((own.get(line, 0.0) for line in span), default=0.0)
            if worst:
                own.update(dict.fromkeys(span, worst))


def _run_counts(spectrum: Spectrum, texts: Mapping[str, str]) -> dict[tuple[str, int], tuple[int, int]]:
    """Return line -> how many failing and passing tests ran it, for lines that some failing test ran."""
    counts: dict[tuple[str, int], tuple[int, int]] = {}
    for test in spectrum.tests:
        if test.outcome == "skipped":
            continue
        for path, lines in test.lines.items():
            for line in lines if path in texts else ():
                failed, passed = counts.get((path, line), (0, 0))
                counts[path, line] = (failed + test.failed, passed + (not test.failed))
    return {place: count for place, count in counts.items() if count[0]}


def _frame_shares(spectrum: Spectrum) -> dict[tuple[str, int], float]:
    """Return line -> its weight in tracebacks of failing tests; the innermost frame has 1."""
    shares: dict[tuple[str, int], float] = {}
    for test in spectrum.failing:
        for depth, place in enumerate(reversed(test.frames[-8:])):
            shares[place] = max(shares.get(place, 0.0), 1.0 / (1 + depth))
    return shares


def _innermost_function(tree: PythonTree, line: int) -> Function | None:
    holders = [n for n in tree.functions_in_order if n.lineno <= line <= (n.end_lineno or n.lineno)]
    return max(holders, key=lambda node: node.lineno, default=None)


def _body_lines(node: Function) -> range:
    return range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)


def score_named_lines(
    texts: Mapping[str, str], outcomes: Sequence[CheckOutcome]
) -> tuple[tuple[SuspectLine, ...], dict[str, dict[int, float]]]:
    """Score lines without coverage: by the names in failing tests, and the lines where these failed.

    Args:
        texts: Path -> text of the files that may be at fault.
        outcomes: The outcomes of the tests on the unchanged code.

    Returns:
        The lines, the most suspicious first, and path -> line -> score.
    """
    facts = [outcome.counterexample for outcome in outcomes if outcome.counterexample is not None]
    scores = {path: _named_scores(path, text, facts) for path, text in texts.items()}
    ranked = sorted(
        ((path, line, score) for path, own in scores.items() for line, score in own.items()),
        key=lambda item: (-item[2], item[0], item[1]),
    )
    suspects = (SuspectLine(path=path, line=line, function="", score=score) for path, line, score in ranked)
    return tuple(suspects), scores


def _named_scores(path: str, text: str, facts: Sequence[Counterexample]) -> dict[int, float]:
    messages = " ".join(f"{fact.check_id} {fact.call} {fact.exception} {fact.actual}" for fact in facts)
    named = set(WORD.findall(messages))
    lines = text.splitlines()
    places = [fact.line for fact in facts if fact.file == path and fact.line]
    places += [int(line) for line in re.findall(rf"{re.escape(path)}:(\d{{1,9}})\b", messages)]
    is_named = bool(named & set(WORD.findall(text)) or places)
    default = SAME_FILE_SUSPICION if is_named else OTHER_FILE_SUSPICION
    scores: dict[int, float] = {}
    for number in range(1, len(lines) + 2):
        is_near = any(abs(number - place) <= NEARBY_LINES for place in places)
        words = set(WORD.findall(lines[number - 1])) if number <= len(lines) else set()
        scores[number] = NAMED_SUSPICION if is_near or words & named else default
    return scores

"""Extracting `>>>` examples from some text as checks.

The parser of doctest is not used, because it rejects much of what people write.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from suture.core.records import Check, Provenance, content_hash
from suture.errors import UsageError
from suture.judge.extraction.literal_calls import find_call, is_literal
from suture.judge.tuning import MAX_CHECK_ID_CHARS, MAX_EXAMPLE_CALLS
from suture.project.python_source.parsing import PARSE_FAULTS

PROMPT_RE = re.compile(r"^([ \t]*)>>>(?:[ ]|(?=\S)|$)(.*)$")
CONTINUATION_RE = re.compile(r"^[ \t]*\.\.\.(?:[ ]|$)(.*)$")
"""A further line of the code after a prompt."""
EXCEPTION_RE = re.compile(r"^(?:[\w.]*\.)?(\w+)(?::|$)")
"""The last line of a traceback; the group is the exception's name without its module."""
TRACEBACK_HEAD = "Traceback (most recent call last):"
RAISED_BY_HELPER = """def raised_by(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "nothing"
"""
"""Added to a check whose example shows a traceback."""


@dataclass
class DoctestPrompt:
    """One `>>>` prompt.

    Attributes:
        start: The position of the prompt in the text.
        output: The lines of output below it.
    """

    start: int
    source: list[str]
    output: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Doctests:
    """The `>>>` examples of a text.

    Attributes:
        checks: Pairs (position in the text, check).
        unread: The prompts that show a result and became no check, with their positions.
        rest: The text with the examples blanked out.
    """

    checks: list[tuple[int, Check]]
    unread: list[tuple[int, str]]
    rest: str


def extract_doctests(text: str, functions: frozenset[str] | None) -> Doctests:
    """Return the `>>>` examples in some text.

    Args:
        text: A docstring or a statement.
        functions: The functions of which an example must call one; `None` for any function.
    """
    checks: list[tuple[int, Check]] = []
    unread: list[tuple[int, str]] = []
    groups, rest = _find_prompts(text)
    for group in groups:
        setup: list[str] = []
        for prompt in group:
            source = "\n".join(prompt.source).strip()
            check = _make_doctest_check(source, prompt.output, setup, functions)
            if check is not None:
                checks.append((prompt.start, check))
            elif any(line.strip() for line in prompt.output):
                unread.append((prompt.start, f">>> {source}"))
            setup.append(source)
    return Doctests(checks=checks, unread=unread, rest=rest)


def _find_prompts(text: str) -> tuple[list[list[DoctestPrompt]], str]:
    """Return (groups, rest): the prompts of each interactive session, and the text with them blanked out."""
    groups: list[list[DoctestPrompt]] = [[]]
    rest: list[str] = []
    current: DoctestPrompt | None = None
    indent = start = 0
    for line in text.splitlines(keepends=True):
        content = line.rstrip("\r\n")
        prompt, continuation = PROMPT_RE.match(content), CONTINUATION_RE.match(content)
        if prompt:
            current, indent = DoctestPrompt(start=start, source=[prompt[2]]), len(prompt[1])
            groups[-1].append(current)
        elif current and continuation and not current.output:
            current.source.append(continuation[1])
        elif current and content[:indent].strip() == "" and content.strip() not in ("", '"""', "'''"):
            current.output.append(content[indent:])
        else:
            if current and content.strip():
                groups.append([])  # other text ends an interactive session
            current = None
        rest.append(line if current is None else " " * len(content) + line[len(content) :])
        start += len(line)
    return groups, "".join(rest)


def _make_doctest_check(
    source: str, output: list[str], setup: list[str], functions: frozenset[str] | None
) -> Check | None:
    try:
        tree = ast.parse(source)
        setup_tree = ast.parse("\n".join(setup))
    except PARSE_FAULTS:
        return None
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        return None
    expression = tree.body[0].value
    if not _is_example(expression, setup_tree, functions):
        return None
    program = _make_assert(ast.unparse(expression), expression, "\n".join(output).strip())
    if program is None:
        return None
    needed_setup = setup if _uses_setup(expression, setup_tree) else []
    helper = [RAISED_BY_HELPER] if "raised_by(" in program else []
    return make_check(program, "visible", setup=[*helper, *needed_setup], name=program)


def _make_assert(call: str, expression: ast.expr, output: str) -> str | None:
    if not output:
        # A comparison such as `>>> f(1) == 2` without output below it is an assertion.
        is_equality = isinstance(expression, ast.Compare) and isinstance(expression.ops[0], ast.Eq)
        return f"assert {call}" if is_equality else None
    if output.startswith(TRACEBACK_HEAD):
        exception = EXCEPTION_RE.match(output.splitlines()[-1])
        return f"assert raised_by(lambda: {call}) == {exception[1]!r}" if exception else None
    try:
        expected = ast.parse(output, mode="eval")
    except PARSE_FAULTS:
        return None
    # An output such as `1 - 2` is printed and not a `repr`.
    if not is_literal(expected) or isinstance(expected.body, ast.BinOp):
        return None
    # Built as a tree, because source would need brackets: `f(1) is None == True` means something else.
    comparison = ast.Compare(left=expression, ops=[ast.Eq()], comparators=[expected.body])
    return ast.unparse(ast.Assert(test=comparison))


def _is_example(expression: ast.expr, setup_tree: ast.Module, functions: frozenset[str] | None) -> bool:
    """Return whether an expression uses one of the functions and no unknown name; without any, whether it is a call."""
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    called_names = {
        node.func.id
        for node in ast.walk(expression)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    bound_names = _find_bound_names(expression) | _find_bound_names(setup_tree)
    if functions is None:
        return bool(called_names - set(dir(builtins)))
    if names - bound_names - functions - set(dir(builtins)):
        return False
    setup_names = {node.id for node in ast.walk(setup_tree) if isinstance(node, ast.Name)}
    return bool(names & functions) or (bool(setup_names & functions) and _uses_setup(expression, setup_tree))


def _uses_setup(expression: ast.expr, setup_tree: ast.Module) -> bool:
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    return bool(names & _find_bound_names(setup_tree))


def _find_bound_names(tree: ast.AST) -> set[str]:
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            bound.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    return bound


def extract_asserts(text: str, provenance: Provenance = "user", trust: float = 1.0) -> tuple[Check, ...]:
    """Return one check for each assert statement at the top level of a program.

    Other top-level statements before an assert (imports, names, functions, loops) become part of its program.
    Statements after the last assert that may test something become one more check, of the whole program.

    Args:
        text: Python source.
        provenance: Who wrote the asserts.
        trust: The trust in the checks, in [0, 1].

    Raises:
        UsageError: The text is not valid Python.
    """
    try:
        tree = ast.parse(text)
    except PARSE_FAULTS as fault:
        reason = f" at line {fault.lineno}: {fault.msg}" if isinstance(fault, SyntaxError) else f": {fault}"
        raise UsageError(f"the tests are not Python{reason}", remedy="fix the syntax of the tests") from fault
    setup: list[str] = []
    checks: list[Check] = []
    pending: list[ast.stmt] = []  # statements since the last assert
    for node in tree.body:
        if isinstance(node, ast.Assert):
            setup += [_get_source(text, pending_node) for pending_node in pending]
            checks.append(make_check(_get_source(text, node), provenance, trust=trust, setup=setup))
            pending = []
            if _shares_state(node, tree):
                # The next assert continues with the state that this one leaves, whether or not it holds.
                setup.append(ast.unparse(node.test))
        else:
            pending.append(node)
    if any(_may_fail(node) for node in pending):
        # Without this check, a final loop of asserts or a final call of a test function would never run.
        whole_text = "\n".join(_get_source(text, node) for node in tree.body)
        name = "; ".join(_get_source(text, node) for node in pending if _may_fail(node))
        checks.append(make_check(whole_text, provenance, trust=trust, name=name))
    return deduplicate_checks(checks)


def _get_source(text: str, node: ast.stmt) -> str:
    if getattr(node, "decorator_list", None):
        return ast.unparse(node)  # a source segment starts at the `def` and drops the decorators
    return ast.get_source_segment(text, node) or ast.unparse(node)


def _shares_state(node: ast.Assert, tree: ast.Module) -> bool:
    """Return whether an assert may change what a later one sees: it uses a variable that is not a constant."""
    mutable_names: set[str] = set()
    for statement in tree.body:
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            continue
        if not isinstance(statement.value, ast.Constant):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            parts = (part for target in targets for part in ast.walk(target))
            mutable_names |= {part.id for part in parts if isinstance(part, ast.Name)}
    nodes = list(ast.walk(node.test))
    used_names = {part.id for part in nodes if isinstance(part, ast.Name)}
    return bool(used_names & mutable_names) or any(isinstance(part, ast.NamedExpr) for part in nodes)


def _may_fail(node: ast.stmt) -> bool:
    """Whether a statement may fail a test: a call or a block may, a definition or a name may not."""
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, (ast.Constant, ast.Name))
    imports_and_assignments = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Pass)
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return not isinstance(node, (*imports_and_assignments, *definitions))


def make_check(
    source: str, provenance: Provenance, *, trust: float = 1.0, setup: Iterable[str] = (), name: str = ""
) -> Check:
    """Return a check whose id is its source as one line, so that the id is stable and readable.

    Args:
        setup: Source of the statements that must run before it.
        name: What the id is made from; `source` by default.
    """
    program = "\n".join((*setup, source)) + "\n"
    check_id = " ".join((name or source).split())
    if len(check_id) > MAX_CHECK_ID_CHARS:
        check_id = f"{check_id[:MAX_CHECK_ID_CHARS]}... #{content_hash(program)[:8]}"
    return Check(id=check_id, provenance=provenance, source=program, trust=trust)


def deduplicate_checks(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return the checks without repetitions; equal ids of different programs get a hash appended."""
    by_id: dict[str, Check] = {}
    for check in checks:
        earlier = by_id.setdefault(check.id, check)
        if earlier.source != check.source:
            new_id = f"{check.id} #{content_hash(check.source)[:8]}"
            by_id.setdefault(new_id, replace(check, id=new_id))
    return tuple(by_id.values())


DEF_NAME_RE = re.compile(r"^(?:async[ \t]+)?def[ \t]+(\w+)[ \t]*\(", re.MULTILINE)
"""The header of a function that is not a method."""
CALL_START_RE = re.compile(r"(?<![\w.@])[A-Za-z_]\w*\(")
FORMULA_RE = re.compile(r"`?\s*(?:=|:=|->|→|is\b|be\b)")
"""Matches what follows a formula such as `g(x) = x + 1`, which defines a notation and asks for no function."""
_LISTED_NAME = r"`?[A-Za-z_]\w*(?:\([^()\n]{0,100}\))?`?"
NAME_LIST_RE = re.compile(
    r"\b(?:functions?|methods?|class(?:es)?|[Ww]rite|[Ii]mplement|[Cc]reate|[Dd]efine|[Pp]rovide):?\s{1,5}"
    r"(?:(?:an?|the|two|three|four|these|both|following|functions?|class(?:es)?|called|named):?\s{1,5})*"
    rf"(?P<names>{_LISTED_NAME}(?:\s{{0,5}},\s{{0,5}}(?:and\s{{1,5}})?{_LISTED_NAME}|\s{{1,5}}and\s{{1,5}}{_LISTED_NAME})*)"
)
"""Matches a list of names that a statement asks for, such as `functions encode and decode`."""


def find_requested_functions(text: str, entry_point: str) -> frozenset[str]:
    """Return the functions and classes that a statement asks for: the entry point and its companions.

    A name counts if it has a `def`, a signature such as `decode(text)`, or is in a list such as `Write
    encode and decode`. A word of such a list need not be a name: it matters only if the text also calls it.
    """
    names = {entry_point, *DEF_NAME_RE.findall(text)}
    names |= {name for name, _, is_formula in _find_signatures(text) if not is_formula}
    for match in NAME_LIST_RE.finditer(text):
        names |= set(re.findall(r"(?<![\w(,= ])[A-Za-z_]\w*|(?<=[,\s`])[A-Za-z_]\w*", match["names"]))
    return frozenset(name for name in names if name == entry_point or _may_be_requested(name))


def _may_be_requested(name: str) -> bool:
    return not (hasattr(builtins, name) or keyword.iskeyword(name) or hasattr(math, name))


def _find_signatures(text: str) -> Iterator[tuple[str, list[str], bool]]:
    """Yield (name, parameters, whether a formula follows) for each call whose arguments are all bare names."""
    for match in islice(CALL_START_RE.finditer(text), MAX_EXAMPLE_CALLS):
        call_and_end = find_call(text, match.start())
        if call_and_end is None:
            continue
        call, end = call_and_end
        parameters = [arg.id for arg in call.args if isinstance(arg, ast.Name)]
        is_signature = parameters and len(parameters) == len(call.args) and not call.keywords
        if is_signature and isinstance(call.func, ast.Name):
            yield call.func.id, parameters, FORMULA_RE.match(text, end) is not None


def find_parameters(text: str, function: str) -> list[str] | None:
    """Return the parameters that a function requires, in order; `None` if the text shows no signature.

    A stub counts first, then a signature in prose such as `add(a, b)`.
    """
    match = re.search(rf"^[ \t]*(?:async[ \t]+)?def\s+{re.escape(function)}\s*\(", text, re.MULTILINE)
    end = text.find(":\n", match.end()) if match else -1
    while match and end >= 0:
        try:
            tree = ast.parse(text[match.start() : end + 1].strip() + " ...")
        except SyntaxError:
            end = text.find(":\n", end + 1)
            continue
        stub = tree.body[0]
        if isinstance(stub, ast.FunctionDef) and not (stub.args.kwonlyargs or stub.args.vararg):
            arguments = [argument.arg for argument in (*stub.args.posonlyargs, *stub.args.args)]
            return arguments[: len(arguments) - len(stub.args.defaults)]
        return None
    signatures = (parameters for name, parameters, _ in _find_signatures(text) if name == function)
    return next(signatures, None)

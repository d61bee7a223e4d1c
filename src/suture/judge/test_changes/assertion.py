"""One assertion of a test, in any language, and how strict it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Literal

from suture.mutation.tree_sitter.syntax_tree import get_field, get_text

if TYPE_CHECKING:
    from tree_sitter import Node


FAILING_HANDLER_WORDS = ("throw", "fail", "panic", "Fatal", "Error(", "reject")
"""Words of a handler that does not lose the failure that it catches."""


def line_of(node: Node) -> int:
    """Return the first line of a node, from 1."""
    return int(node.start_point[0]) + 1


def normalised_source(node: Node) -> str:
    """Return the tokens of a node without layout and comments."""
    tokens: list[str] = []
    stack = [node]
    while stack:
        part = stack.pop()
        if part.type == "comment":
            continue
        if part.child_count == 0 or part.type in ("string", "template_string", "interpreted_string_literal"):
            tokens.append(get_text(part))
        else:
            stack.extend(reversed(part.children))
    return " ".join(token for token in tokens if token.strip())


def called_path(call: Node) -> list[str]:
    """Return the names of what a call calls, such as `["it", "skip"]`; empty if it is not a chain of names.

    The calls within the chain are left out: `test.each([1])("a", f)` gives `["test", "each"]`.
    """
    names: list[str] = []
    node = get_field(call, "function")
    while node is not None:
        if node.type == "call_expression":
            node = get_field(node, "function")
        elif node.type in ("member_expression", "selector_expression"):
            names.append(get_text(get_field(node, "property", "field")))
            node = get_field(node, "object", "operand")
        elif node.type == "identifier":
            names.append(get_text(node))
            break
        else:
            return []
    return names[::-1]


def arguments_of(call: Node) -> list[Node]:
    """Return the arguments of a call."""
    arguments = get_field(call, "arguments")
    return [a for a in arguments.named_children if a.type != "comment"] if arguments is not None else []


def is_conditional(node: Node, body: Node) -> bool:
    """Return whether a node is in a branch of a test's body that may not run."""
    above = node.parent
    below = node
    while above is not None and above.id != body.id:
        if above.type in ("if_statement", "ternary_expression", "switch_case", "expression_case"):
            condition = get_field(above, "condition")
            if condition is None or condition.id != below.id:
                return True
        if above.type == "binary_expression" and get_text(above.child_by_field_name("operator")) in (
            "&&",
            "||",
        ):
            return True
        below, above = above, above.parent
    return False


def is_guarded(node: Node, body: Node) -> bool:
    """Return whether a handler around a node catches its failure, and does not fail itself."""
    above, below = node.parent, node
    while above is not None and above.id != body.id:
        if above.type == "try_statement":
            tried, handler = get_field(above, "body"), get_field(above, "handler")
            is_tried = tried is not None and tried.id == below.id
            if is_tried and handler is not None and _loses_failure(handler):
                return True
        if above.type == "call_expression":
            member = get_field(above, "function")
            is_caught = member is not None and member.id == below.id and called_path(above)[-1:] == ["catch"]
            if is_caught or (
                member is not None
                and member.type == "member_expression"
                and get_text(get_field(member, "property")) == "catch"
                and below.id == member.id
            ):
                return True
        below, above = above, above.parent
    return False


def _loses_failure(handler: Node) -> bool:
    text = get_text(handler)
    return not any(word in text for word in FAILING_HANDLER_WORDS)


MAX_SHOWN_CHARS = 120
"""Length of quoted source; the rest of a longer line says little."""
BROAD_EXCEPTIONS = frozenset(("", "Exception", "BaseException", "Error"))
DIGIT_BOUNDS = ("places", "decimal", "digits")
"""Bounds of which a smaller number is wider."""
USUAL_TOLERANCE = 1e-6
"""The relative error that an approximate comparison without a bound accepts, in pytest and numpy alike."""


class Strength(IntEnum):
    """How much an assertion demands."""

    TRUTH = 0
    RELATION = 1
    APPROXIMATE = 2
    EQUALITY = 3


@dataclass(frozen=True, kw_only=True)
class Assertion:
    """One assertion of a test.

    Attributes:
        subject: Source of what is tested, without what it is compared with.
        expected: Source of what it is compared with; empty if it is only tested for truth.
        tolerances: Name -> value of the arguments that bound the error of an approximate comparison.
        exceptions: For an assertion about a raised exception, the names of the accepted ones; else empty.
        is_guarded: Whether a handler around it catches its failure, so that the test continues.
        is_conditional: Whether it is in a branch that may not run.
        line: Its line, from 1.
        text: Its source in one line.
    """

    subject: str
    strength: Strength
    expected: str = ""
    tolerances: tuple[tuple[str, float], ...] = ()
    exceptions: tuple[str, ...] = ()
    is_guarded: bool = False
    is_conditional: bool = False
    line: int = 0
    text: str = ""

    @property
    def demand(self) -> tuple[object, ...]:
        """What the assertion asks for, without its place."""
        return (
            self.subject,
            self.strength,
            self.expected,
            self.tolerances,
            self.exceptions,
            self.is_guarded,
            self.is_conditional,
        )


def shorten_source(source: str) -> str:
    """Return source in one line, shortened."""
    text = " ".join(source.split())
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]} ..."


def has_wider_tolerance(before: Assertion, after: Assertion) -> bool:
    """Return whether an approximate comparison accepts a larger error than before."""
    old, new = dict(before.tolerances), dict(after.tolerances)
    for name, value in new.items():
        is_digits = name in DIGIT_BOUNDS
        if name in old and (value < old[name] if is_digits else value > old[name]):
            return True
        if name not in old and not is_digits and (old or value > USUAL_TOLERANCE):
            return True
    return any(name in DIGIT_BOUNDS for name in old.keys() - new.keys())


def is_broader(before: Assertion, after: Assertion) -> bool:
    """Return whether an assertion about an exception accepts more of them, or more messages, than before."""
    if not before.exceptions or not after.exceptions:
        return False
    gained = set(after.exceptions) - set(before.exceptions)
    keeps_all = set(before.exceptions) <= set(after.exceptions)
    lost_message = bool(before.expected) and not after.expected
    return bool(gained & BROAD_EXCEPTIONS) or (bool(gained) and keeps_all) or lost_message


TestChangeCode = Literal[
    "test_removed",
    "test_skipped",
    "assertion_removed",
    "assertion_loosened",
    "assertion_guarded",
    "tolerance_widened",
    "exception_broadened",
    "expectation_changed",
    "cases_removed",
    "test_support_changed",
    "test_hook_added",
    "test_hook_changed",
    "asserts_nothing",
]
"""What a change does to a test. All but `expectation_changed`, `test_support_changed`, `test_hook_changed` and
`asserts_nothing` weaken it."""
WEAKENING_CODES: frozenset[TestChangeCode] = frozenset((
    "test_removed",
    "test_skipped",
    "assertion_removed",
    "assertion_loosened",
    "assertion_guarded",
    "tolerance_widened",
    "exception_broadened",
    "cases_removed",
    "test_hook_added",
))  # fmt: skip
"""Codes of changes after which a test accepts more than before."""


@dataclass(frozen=True, kw_only=True)
class TestChange:
    """One thing that a change does to a test.

    Attributes:
        path: The test file.
        line: Line in the new file, from 1; in the old file for something that was removed.
        test: The test as `Class::function` or `function`; empty if it concerns the whole file.
        before: The old source in one line, shortened; empty if there was none.
        after: The new source in one line, shortened; empty if it was removed.
        names: For a removed test, what it uses: names that it does not define itself, and strings.
    """

    __test__ = False  # keeps pytest from collecting this class

    code: TestChangeCode
    path: str
    line: int
    test: str = ""
    before: str = ""
    after: str = ""
    names: frozenset[str] = frozenset()

    @property
    def weakens(self) -> bool:
        """Whether the test accepts more than before."""
        return self.code in WEAKENING_CODES


@dataclass(frozen=True, kw_only=True)
class TestFileChanges:
    """What a change does to the tests of one file.

    Attributes:
        changes: The changes, in the order of their lines.
        new_tests: Tests that did not exist before.
        changed_tests: Tests that existed before and have another body now.
        removed_tests: Tests that no longer exist, renamed ones excepted.
        moved_tests: Those of the removed tests that another place has now -> its file and the test's name there. They
            may not run there.
    """

    __test__ = False

    changes: tuple[TestChange, ...] = ()
    new_tests: tuple[str, ...] = ()
    changed_tests: tuple[str, ...] = ()
    removed_tests: tuple[str, ...] = ()
    moved_tests: Mapping[str, tuple[str, str]] = field(default_factory=dict)

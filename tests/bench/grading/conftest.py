"""A small problem that all tests of grading share."""

from __future__ import annotations

import pytest

from suture.bench import Problem


@pytest.fixture
def double_problem() -> Problem:
    """Return the problem of writing a function that doubles a number."""
    return Problem(
        id="made/1",
        dataset="made",
        kind="write",
        statement='def double(n):\n    """Twice.\n\n    >>> double(2)\n    4\n    """\n',
        entry_point="double",
        hidden="assert double(3) == 6\nassert double(2) == 4\n",
        reference="def double(n):\n    return 2 * n\n",
        licence="none",
        source="here",
    )

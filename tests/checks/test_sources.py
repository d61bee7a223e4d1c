from __future__ import annotations

import pytest

from suture.checks import asserts_in
from suture.errors import UsageError


def test_one_check_for_each_assert_with_what_it_needs() -> None:
    first, second = asserts_in("import math\nassert f(1) == 2\nx = 3\nassert f(x) == math.pi\n")
    assert first.source == "import math\nassert f(1) == 2\n"
    assert second.source == "import math\nx = 3\nassert f(x) == math.pi\n"
    assert (first.id, first.provenance, first.trust) == ("assert f(1) == 2", "user", 1.0)


def test_ids_are_stable_short_and_distinct() -> None:
    text = f"x = 1\nassert f(x)\nx = 2\nassert f(x)\nassert f(x)\nassert f({'1' * 200})"
    ids = [check.id for check in asserts_in(text)]
    assert ids == [check.id for check in asserts_in(text)]
    assert len(ids) == len(set(ids)) == 3
    assert ids[0] == "assert f(x)"
    assert all(len(name) < 130 for name in ids)


def test_what_is_not_python_is_refused_with_its_line() -> None:
    with pytest.raises(UsageError, match="line 2"):
        asserts_in("x = 1\nassert f(")


def test_no_asserts_no_checks() -> None:
    assert asserts_in("x = 1") == ()

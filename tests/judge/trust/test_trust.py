"""Trust in generated checks, from the outcomes of candidates, without running anything."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suture.core.records import Check, CheckStatus, Provenance
from suture.judge.trust.assessment import CandidateRow, assess_matrix
from suture.judge.trust.check_filter import contradict, filter_checks, parse_claim

GIVEN = (Check(id="given", provenance="visible", source="assert f(1) == [2]"),)


def make_checks(*sources: str, author: Provenance = "spec") -> tuple[Check, ...]:
    return tuple(Check(id=s[:40], provenance=author, source=s, trust=0.0) for s in sources)


def make_row(name: str, passed: str, failed: str = "", *, viable: bool = True) -> CandidateRow:
    statuses: dict[str, CheckStatus] = dict.fromkeys(passed.split("|"), "passed") if passed else {}
    statuses |= dict.fromkeys(failed.split("|"), "failed") if failed else {}
    return CandidateRow(candidate=name, viable=viable, statuses=statuses)


@pytest.mark.parametrize(
    ("source", "call", "kind", "value"),
    [
        ("assert f(0x10, b = 'a') == 2, 'no'", "f(16, b='a')", "equals", 2),
        ("assert [1, (2,)] == f( )", "f()", "equals", [1, (2,)]),
        ("assert f(1) is None", "f(1)", "equals", None),
        ("assert f(1)", "f(1)", "truth", True),
        ("assert not f(1)  # never", "f(1)", "truth", False),
        ("assert sorted(f(1)) == [1]", "sorted(f(1))", "equals", [1]),
        ("x = [1]\nassert f(x) == -1", "x = [1]\nf(x)", "equals", -1),
    ],
)
def test_a_claim_is_parsed(source: str, call: str, kind: str, value: object) -> None:
    claim = parse_claim(Check(id="c", provenance="spec", source=source))
    assert claim is not None
    assert claim.expected is not None
    assert (claim.call, claim.expected.kind, claim.expected.value) == (call, kind, value)


@pytest.mark.parametrize(
    "source",
    [
        "for i in range(3):\n    assert f(f(i)) == i",
        "assert abs(f(1) - 2) < 1e-6",
        "assert f(1) == f(2)",
        "assert len([1]) == 1",
        "assert f(1) == 1 == f(2)",
        "assert f(1) == 2\nassert f(2) == 3",
    ],
)
def test_a_check_without_a_single_claim_has_no_call(source: str) -> None:
    claim = parse_claim(Check(id="c", provenance="property", source=source))
    assert claim is not None
    assert (claim.call, claim.expected) == ("", None)


def test_only_incompatible_expectations_contradict_each_other() -> None:
    claims = [parse_claim(check) for check in make_checks("assert f()", "assert not f()", "assert f() == 3")]
    true, false, three = [claim.expected for claim in claims if claim and claim.expected]
    assert contradict(true, false)
    assert contradict(false, three)
    assert not contradict(true, three)


def test_checks_are_rejected_without_a_run() -> None:
    checks = make_checks(
        "assert f(1) == [2], 'again'",
        "assert f(1) == [3]",
        "assert f(2) == [4]",
        "assert  f( 2 ) == [4], 'twice'",
        "assert g(2) == 4",
        "assert f(3) == f(3)",
        "assert f(",
    )
    filtered = filter_checks(checks, GIVEN, "f")
    assert [check.source for check in filtered.checks] == ["assert f(2) == [4]"]
    assert [(removed.code, removed.subject) for removed in filtered.removed] == [
        ("repeats_given", ""),
        ("contradicts_given", "assert f(1) == [2]"),
        ("repeats_generated", "assert f(2) == [4]"),
        ("other_function", "f"),
        ("trivial", ""),
        ("unparsable", ""),
    ]
    assert filtered.record == {"spec": (1, 1)}

    deep = make_checks(f"assert f({'+'.join('1' * 900)}) == [900]")
    assert len(filter_checks(deep, GIVEN, "f").checks) + len(filter_checks(deep, GIVEN, "f").removed) == 1


def test_different_checks_get_different_ids() -> None:
    one = Check(id="given", provenance="spec", source="x = 1\nassert f(x) == [5]")
    two = Check(id="given", provenance="adversarial", source="x = 2\nassert f(x) == [5]")
    filtered = filter_checks((one, two), GIVEN, "f")
    assert len({check.id for check in filtered.checks} | {"given"}) == 3
    assert set(filtered.claims) == {check.id for check in filtered.checks}


def test_of_contradicting_checks_the_one_with_more_votes_is_kept() -> None:
    filtered = filter_checks(
        make_checks("assert f(2) == [4]", "assert f(2) == [5]", "assert f(3) == [6]"), GIVEN, "f"
    )
    rows = [
        make_row("a", "assert f(2) == [4]|assert f(3) == [6]", "assert f(2) == [5]"),
        make_row("b", "assert f(2) == [4]|assert f(3) == [6]", "assert f(2) == [5]"),
        make_row("c", "assert f(2) == [5]", "assert f(2) == [4]|assert f(3) == [6]"),
    ]
    assessment = assess_matrix(filtered, rows)
    assert {check.id for check in assessment.checks} == {"assert f(2) == [4]", "assert f(3) == [6]"}

    rejected = assessment.removed[0]
    assert (rejected.code, rejected.subject) == ("contradicts_generated", "assert f(2) == [4]")
    assert (assessment.candidates, assessment.behaviours) == (3, 2)

    tied = assess_matrix(
        filter_checks(make_checks("assert f(2) == [4]", "assert f(2) == [5]"), GIVEN, "f"), []
    )
    assert tied.checks == ()


def test_candidates_that_fail_a_given_check_do_not_count() -> None:
    filtered = filter_checks(make_checks("assert f(2) == [4]"), GIVEN, "f")
    rows = [make_row(str(n), "assert f(2) == [4]", viable=False) for n in range(5)]
    (check,) = assess_matrix(filtered, rows).checks
    assert check.trust <= 0.5


def test_an_author_that_contradicts_the_examples_is_trusted_less() -> None:
    def trust(*also: str) -> float:
        filtered = filter_checks(make_checks("assert f(2) == [4]", *also), GIVEN, "f")
        rows = [make_row(str(n), "assert f(2) == [4]") for n in range(3)]
        return assess_matrix(filtered, rows).checks[0].trust

    assert trust("assert f(1) == [9]") < trust() < trust("assert f(1) == [2]")


def test_a_low_probability_of_the_model_only_lowers_trust() -> None:
    filtered = filter_checks(make_checks("assert f(2) == [4]"), GIVEN, "f")
    (check,) = filtered.checks
    rows = [make_row(str(n), "assert f(2) == [4]") for n in range(3)]

    trusts = [
        assess_matrix(filtered, rows, log_probabilities).checks[0].trust
        for log_probabilities in (
            {},
            {check.source: -0.01},
            {check.source: -1.5},
            {"assert f(3) == [6]": -1.5},
        )
    ]

    assert trusts[0] == trusts[1] == trusts[3] > trusts[2]


IDS = ["assert f(2) == [4]", "assert f(3) == [6]", "for i in (1, 2):\n    assert f(i)"]
TABLES = st.lists(
    st.lists(st.sampled_from(["passed", "failed", "timeout", None]), min_size=3, max_size=3), max_size=6
)


@given(TABLES)
@settings(max_examples=60, deadline=None)
def test_more_votes_never_lower_trust_and_order_is_irrelevant(table: list[list[CheckStatus | None]]) -> None:
    filtered = filter_checks(make_checks(*IDS), GIVEN, "f")
    ids = [check.id for check in filtered.checks]

    def compute_trusts(rows: list[list[CheckStatus | None]]) -> dict[str, float]:
        candidate_rows = [
            CandidateRow(
                candidate=str(n),
                viable=True,
                statuses={i: s for i, s in zip(ids, statuses, strict=True) if s},
            )
            for n, statuses in enumerate(rows)
        ]
        return {check.id: check.trust for check in assess_matrix(filtered, candidate_rows).checks}

    before = compute_trusts(table)

    assert set(before) == set(ids)
    assert all(0 <= trust <= 1 for trust in before.values())
    assert compute_trusts(table[::-1]) == before
    assert all(before[i] <= trust for i, trust in compute_trusts([*table, ["passed"] * 3]).items())

"""Trust in generated checks, from running them against candidates in the sandbox."""

from __future__ import annotations

from dataclasses import replace

from suture.agents.roles.testers import properties_from_reply
from suture.core.records import Candidate, Check, Task
from suture.core.settings import SandboxSettings
from suture.judge import check_candidate, prepare_suite
from suture.judge.trust.assessment import MatrixLimits, assess_checks
from suture.models import Reply
from suture.sandbox import Sandbox

TASK = Task(
    statement="def clamp(x, low, high):\n    '''\n    >>> clamp(5, 0, 3)\n    3\n    '''",
    entry_point="clamp",
    checks=(Check(id="v", provenance="visible", source="assert clamp(1, 0, 3) == 1"),),
)
RIGHT = "def clamp(x, low, high):\n    return max(low, min(x, high))\n"
SAME = "def clamp(x, low, high):\n    return low if x < low else high if x > high else x\n"
NEARLY = "def clamp(x, low, high):\n    return min(x, high)\n"
WRONG = "def clamp(x, low, high):\n    return -9\n"
ENDLESS = "def clamp(x, low, high):\n    while 3 < x < 6: pass\n    return x\n"

TESTS = (
    "assert clamp(5, 0, 3) == 3",  # an example of the statement
    "assert clamp(5, 0, 3) == 5",
    "assert clamp(-1, 0, 3) == 0",
    "assert clamp(-2, 0, 3) == -9",
    "assert clamp(2, 0, 3) == 2",
    "assert clamp(9, 0, 3) == 3",
)
PROPERTY = "for x in range(-9, 9):\n    assert clamp(clamp(x, -2, 4), -2, 4) == clamp(x, -2, 4)"
GENERATED = (
    *(Check(id=source, provenance="spec", source=source, trust=0.0) for source in TESTS),
    Check(id="idempotent", provenance="property", source=PROPERTY, trust=0.0),
)


async def test_checks_that_agreeing_candidates_pass_are_trusted(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    suite = await prepare_suite(TASK, sandbox, sandbox_settings)
    codes = (RIGHT, SAME, NEARLY, WRONG)
    candidates = [Candidate(files={"solution.py": code}, origin="sample") for code in codes]
    judged = [(candidate, await check_candidate(candidate, suite)) for candidate in candidates]
    assessment = await assess_checks(GENERATED, judged, suite)
    trust = {check.id: check.trust for check in assessment.checks}
    assert trust["assert clamp(9, 0, 3) == 3"] > trust["assert clamp(-1, 0, 3) == 0"] > 0.5
    assert trust["idempotent"] > 0.5
    assert trust["assert clamp(-2, 0, 3) == -9"] < 0.2  # only code that fails the given check passes it

    rejections = {removed.check.id: removed.code for removed in assessment.removed}
    assert rejections["assert clamp(5, 0, 3) == 3"] == "repeats_given"
    assert rejections["assert clamp(5, 0, 3) == 5"] == "contradicts_given"
    assert (assessment.candidates, assessment.behaviours) == (3, 2)


async def test_the_matrix_keeps_its_limits(sandbox: Sandbox, sandbox_settings: SandboxSettings) -> None:
    suite = await prepare_suite(TASK, sandbox, sandbox_settings)
    candidates = [Candidate(files={"solution.py": code}, origin="sample") for code in (ENDLESS, RIGHT)]
    judged = [(candidate, await check_candidate(candidate, suite)) for candidate in candidates]
    many = tuple(
        Check(id=str(n), provenance="spec", source=f"assert clamp({n}, 0, 99) == {n}") for n in range(2, 20)
    )
    limits = MatrixLimits(checks=10, check_timeout_s=0.9, candidates=2, timeout_s=100)
    assessment = await assess_checks(many, judged, suite, limits=limits)
    trust = {check.id: check.trust for check in assessment.checks}
    # The endless candidate timed out in the first eight checks, then it was skipped.
    assert trust["4"] < trust["10"] < trust["2"]
    assert trust["15"] <= 0.5  # no candidate ran it

    unmeasured = await assess_checks(many, judged, suite, limits=MatrixLimits(timeout_s=0.001))
    assert all(check.trust <= 0.5 for check in unmeasured.checks)


async def test_a_hypothesis_test_is_judged_in_the_sandbox(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    test = (
        "from hypothesis import given, strategies as st\n\n\n"
        "@given(st.integers(), st.integers(-9, 0), st.integers(0, 9))\n"
        "def test_it_stays_between(x, low, high):\n    assert low <= clamp(x, low, high) <= high\n"
    )
    properties = properties_from_reply(Reply(text=f"```python\n{test}```"), "clamp").checks
    task = replace(TASK, checks=tuple(replace(check, trust=1.0) for check in properties))
    suite = await prepare_suite(task, sandbox, sandbox_settings)
    for code, passed in ((RIGHT, 1), (NEARLY, 0)):
        candidate = Candidate(files={"solution.py": code}, origin="sample")
        verdict = await check_candidate(candidate, suite)
        assert (len(verdict.passed), verdict.evidence) == (passed, "split")

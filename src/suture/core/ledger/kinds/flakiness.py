"""Events of flaky tests: what decides how they end, and whether a repair holds under adverse conditions."""

from __future__ import annotations

from suture.core.ledger.event import Payload
from suture.core.records.flakiness import FlakyDiagnosis, TestCondition


class FlakyTestsInvestigated(Payload, kind="flaky.tests_investigated"):
    """Experiments showed what decides how flaky tests end, or that this stays unknown.

    Attributes:
        diagnoses: One diagnosis for each test that was investigated.
        not_investigated: Ids of the flaky tests that were not investigated: their runner is not pytest, or there was
            no time.
        quarantine: Name of a patch in the run folder that marks these tests; empty if there is none. It is never
            applied.
    """

    diagnoses: tuple[FlakyDiagnosis, ...] = ()
    not_investigated: tuple[str, ...] = ()
    quarantine: str = ""


class FlakyRepairTried(Payload, kind="flaky.repair_tried"):
    """A candidate that passes its tests ran them under adverse conditions.

    Attributes:
        candidate: Hash of the candidate.
        runs: Number of these runs.
        clean: How many of them passed before one failed or the time was up.
        condition: Condition under which a run failed; null if none did.
        tests: Ids of the tests that failed then.
    """

    candidate: str
    runs: int
    clean: int
    condition: TestCondition | None = None
    tests: tuple[str, ...] = ()

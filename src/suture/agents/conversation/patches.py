"""The patches of a conversation: what each changes, how the deciding tests end, and which one is the best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suture.agents.context.deciding_checks import count_deciding_checks
from suture.core.records import Verdict


@dataclass(frozen=True, kw_only=True)
class Patch:
    """All changes of a conversation at one point, and what the deciding tests say about them.

    Attributes:
        number: Its number in the turn, from 1; 0 is the code at the beginning.
        changed: The files that differ from those at the beginning: path -> text.
        verdict: The verdict; `None` for the beginning of a task that has no code yet.
        passed: Number of deciding tests that pass.
        failed: Number of deciding tests that fail.
        regressed: Number of deciding tests that passed on the user's own code and do not pass now.
    """

    number: int
    changed: Mapping[str, str]
    verdict: Verdict | None
    passed: int = 0
    failed: int = 0
    regressed: int = 0

    @property
    def passes(self) -> bool:
        """Return whether no deciding test fails."""
        return self.verdict is not None and not self.failed and not self.regressed

    @property
    def is_refused(self) -> bool:
        """Return whether the safety scan did not let it run."""
        return self.verdict is not None and any(note.code == "scan_refused" for note in self.verdict.notes)

    def is_better_than(self, other: Patch) -> bool:
        """Return whether it comes first in the trusted order."""
        return self._rank() > other._rank()

    def is_worse_than(self, other: Patch) -> bool:
        """Return whether the other one comes first in the trusted order."""
        return self._rank() < other._rank()

    def _rank(self) -> tuple[bool, bool, bool, int, int, int]:
        """Return the key of the trusted order (see `find_best`); any code comes before none."""
        has_code = self.verdict is not None
        return (not self.is_refused, has_code, self.passes, -self.regressed, self.passed, -self.failed)


def make_patch(
    number: int,
    changed: Mapping[str, str],
    verdict: Verdict | None,
    baseline: Verdict | None,
    threshold: float,
) -> Patch:
    """Return a patch with the numbers of its verdict."""
    if verdict is None:
        return Patch(number=number, changed=changed, verdict=None)
    passed, failed, regressed = count_deciding_checks(verdict, baseline, threshold)
    return Patch(
        number=number, changed=changed, verdict=verdict, passed=passed, failed=failed, regressed=regressed
    )

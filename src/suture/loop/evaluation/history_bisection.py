"""Which change broke the failing tests: they are run on the project's code at earlier commits."""

from __future__ import annotations

from collections.abc import Mapping

from suture.core.ledger.kinds import HistorySearched
from suture.loop.context import RunContext
from suture.loop.evaluation.search_setup import TargetTests
from suture.project.workspace import overlay_candidate
from suture.search import Hunk, compute_hunks

LONGEST_RUN_S = 30.0
"""Wall-clock seconds of one run of the failing tests; what takes longer is no help in hurrying a search."""


async def suspect_hunks(guide: TargetTests, texts: Mapping[str, str], context: RunContext) -> tuple[Hunk, ...]:
    """What the change that broke the tests changed; nothing where history does not tell.

    Today's tests are run on yesterday's code. Where they pass on none of it there is no such change: then all
    that changed since a commit which the user named is what is suspected.

    Args:
        guide: The tests that fail.
        texts: Path -> text of the files that a candidate may change.
        context: The run, into whose ledger goes what was found.

    Raises:
        SandboxError: The wall failed.
    """
    task = context.task
    if not guide.failing or not any(state.files for state in task.earlier_versions):
        return ()
    history = _History(guide, texts, context)
    good, bad = await history.find_change()
    passes = "" if good is None else task.earlier_versions[good].commit
    broke = "" if good is None else history.name_of(bad)
    searched = HistorySearched(since=task.since, runs=history.runs, last_good=passes, first_bad=broke)
    context.ledger.append(searched)
    if good is not None:
        return compute_hunks(history.texts_at(good), history.texts_at(bad))
    return compute_hunks(history.texts_at(len(task.earlier_versions) - 1), texts) if task.since else ()


class _History:
    """The states of a task's files, newest first; -1 is the code as it is now."""

    def __init__(self, guide: TargetTests, texts: Mapping[str, str], context: RunContext) -> None:
        self._guide, self._texts, self._task = guide, texts, context.task
        self._states = context.task.earlier_versions
        self.runs = 0

    async def find_change(self) -> tuple[int | None, int]:
        """The first state on which the tests pass, and the next after it, on which they do not.

        The oldest state of a history that nobody chose is often older than what the tests are about, and says
        null: a state on which they pass is looked for in growing steps from now on backwards.
        """
        bad = -1 if self._states[0].files else 0
        if self._task.since and await self._passes(len(self._states) - 1):
            return await self._bisected(len(self._states) - 1, bad)
        step = 1
        while bad + step < len(self._states):
            if await self._passes(bad + step):
                return await self._bisected(bad + step, bad)
            bad, step = bad + step, 2 * step
        return None, bad

    async def _bisected(self, good: int, bad: int) -> tuple[int, int]:
        while good - bad > 1:
            middle = (good + bad) // 2
            if await self._passes(middle):
                good = middle
            else:
                bad = middle
        return good, bad

    async def _passes(self, number: int) -> bool:
        self.runs += 1
        older = {path: text for path, text in self._states[number].files.items() if path in self._texts}
        files = overlay_candidate(self._task.files, older)
        outcomes = await self._guide.command.run_selected(files, self._guide.failing, LONGEST_RUN_S)
        return len(outcomes) == len(self._guide.failing) and all(outcome.passed for outcome in outcomes)

    def texts_at(self, number: int) -> dict[str, str]:
        """Path -> text of the files that a candidate may change, as they were."""
        then = self._states[number].files if number >= 0 else {}
        return {path: then.get(path, text) for path, text in self._texts.items()}

    def name_of(self, number: int) -> str:
        """What made a state, for people."""
        if number < 0:
            return "changes that are not committed"
        return f"{self._states[number].commit} {self._states[number].subject}".strip()

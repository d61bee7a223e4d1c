"""Find the commit that broke the failing tests, by running them on the project's code at earlier commits."""

from __future__ import annotations

from suture.core.ledger.kinds import HistorySearched
from suture.loop.context import RunContext
from suture.loop.tuning import MAX_HISTORY_RUN_S
from suture.project.workspace import overlay_candidate
from suture.search import FailingProject, Hunk, compute_hunks


async def find_suspect_hunks(project: FailingProject, context: RunContext) -> tuple[Hunk, ...]:
    """Return the hunks of the change that broke the tests; none if the history does not show it.

    The present tests run on the code of earlier commits. If they pass on none of it, and the user named a
    commit, everything that changed since that commit is suspected.
    """
    task = context.task
    if not project.failing() or not any(version.files for version in task.earlier_versions):
        return ()
    history = _History(project, context)
    good, bad = await history.find_change()
    context.ledger.append(
        HistorySearched(
            since=task.since,
            runs=history.runs,
            last_good="" if good is None else task.earlier_versions[good].commit,
            first_bad="" if good is None else history.describe(bad),
        )
    )
    if good is not None:
        return compute_hunks(history.texts_at(good), history.texts_at(bad))
    oldest = len(task.earlier_versions) - 1
    return compute_hunks(history.texts_at(oldest), project.texts) if task.since else ()


class _History:
    """The versions of a task's files, the newest first; version -1 is the present code."""

    def __init__(self, project: FailingProject, context: RunContext) -> None:
        self._command, self._failing, self._texts = project.command, project.failing(), project.texts
        self._task = context.task
        self._versions = context.task.earlier_versions
        self.runs = 0

    async def find_change(self) -> tuple[int | None, int]:
        """Return `(newest version on which the tests pass, next newer version)`.

        The first is `None` if the tests pass on no version that was tried.
        """
        # Without files, the newest version is the same as the present code, on which the tests fail.
        bad = -1 if self._versions[0].files else 0
        if self._task.since and await self._passes(len(self._versions) - 1):
            return await self._bisect(len(self._versions) - 1, bad)
        # If nobody chose the oldest version, it is often older than the code that the tests are about, so that
        # a failure there says nothing. Growing steps backwards find a version that passes.
        step = 1
        while bad + step < len(self._versions):
            if await self._passes(bad + step):
                return await self._bisect(bad + step, bad)
            bad, step = bad + step, 2 * step
        return None, bad

    async def _bisect(self, good: int, bad: int) -> tuple[int, int]:
        while good - bad > 1:
            middle = (good + bad) // 2
            if await self._passes(middle):
                good = middle
            else:
                bad = middle
        return good, bad

    async def _passes(self, number: int) -> bool:
        self.runs += 1
        older = {path: text for path, text in self._versions[number].files.items() if path in self._texts}
        files = overlay_candidate(self._task.files, older)
        outcomes = await self._command.run_selected(files, self._failing, MAX_HISTORY_RUN_S)
        return len(outcomes) == len(self._failing) and all(outcome.passed for outcome in outcomes)

    def texts_at(self, number: int) -> dict[str, str]:
        """Return the files that may change, as they were in a version: path -> text."""
        older = self._versions[number].files if number >= 0 else {}
        return {path: older.get(path, text) for path, text in self._texts.items()}

    def describe(self, number: int) -> str:
        """Return a version's commit and subject, for people."""
        if number < 0:
            return "changes that are not committed"
        return f"{self._versions[number].commit} {self._versions[number].subject}".strip()

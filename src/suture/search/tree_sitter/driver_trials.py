"""A search whose trials a driver makes: a look at the unchanged code, then candidates in rounds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from suture.judge.trials.trial_records import Proposal, Spectrum
from suture.search.engine.search_clock import RECOMMENDED_SHARE
from suture.search.failing_project import FailingProject
from suture.search.search_limits import SearchLimits
from suture.search.tree_sitter.driver_protocol import Driver, run_driver, shell_lines, select_trial_reports, run_rounds
from suture.search.tree_sitter.driver_reports import (
    MOST_STACK_CHARS,
    covering_of,
    differing_of,
    listed,
    longest_ms,
    owner_of,
    runs_of,
    seconds_of,
    stuck_files,
    trial_of,
)
from suture.search.ranking.rivals import Key
from suture.search.search_result import SearchResult

LINGER_MS = 1500
LOOK_S, MUTE_LOOK_S, WATCHED_LOOK_S = 30.0, 3.0, 10.0
"""A look; one at what never ends; and where a driver can end the loops of that."""
FIRST_PART = 4
"""Of a round, the first of a search: what is likely is soon known."""
MUTE_ROUND, MUTE_RIVALS = 20, 10
"""Where the unchanged code never ends: most candidates do not either, and take all the time that one has."""
ALL_TRIED = "everything was tried"
PATIENCE, MUTE_WALL_S, START_MS = 6.0, 1.0, 20_000
"""A trial may take so many times what the unchanged code took, and so many seconds where that never ended; a
process may take so long until it is ready for one."""
CPU_PATIENCE, LEAST_CPU_MS, LOADED = 10.0, 50.0, 10.0
"""CPU time of a candidate's test: so many times that of the longest that passes as it is, at least this.
It may wait ten times as long for that on a busy machine."""

Told = tuple[Proposal, dict[str, Any]]
Enough = Callable[[Sequence[Told]], bool]


class DriverTrials:
    """The trials of one search.

    Args:
        driver: Who makes them.
        project: What it is for.
    """

    def __init__(self, driver: Driver, project: FailingProject) -> None:
        self._driver, self.project, self.language = driver, project, project.language
        self._before = {outcome.check_id: outcome.status for outcome in project.outcomes}
        self._is_by_status = any(outcome.evidence == "exit_status" for outcome in project.outcomes)
        self._common: dict[str, Any] = {}
        self._wall_s = driver.least_wall_s
        self.began_s = time.monotonic()
        """When the search began."""
        self._never_ends = self._is_mute
        self._has_run = False
        self.tried: set[Key] = set()
        """Path and edits of the candidates that were tried."""
        self.round_s = math.inf
        """What the look took: a runner's start, or a compiler's, is not worth a short look."""
        self.is_lost = False
        """Whether no test is seen here: no runner can be loaded, or the files are not of its kind."""

    async def look(self, seconds: float) -> Spectrum:
        """What the tests do on the unchanged code, and which of them trials can be made of.

        Raises:
            SandboxError: The wall failed.
        """
        tests = self._test_files()
        if self._is_mute:
            seconds = min(seconds, WATCHED_LOOK_S if self._driver.watched else MUTE_LOOK_S)
        files, texts = self.project.files, self.project.texts
        told_once = self._driver.common(files, tests, shell_lines(self.project.argv, files))
        tests = told_once.get("files", tests)
        common = {**told_once, "texts": dict(texts), "files": tests}
        stuck = stuck_files({*tests} & {*files}, self._before) if "engine" not in told_once else []
        parts = [part for part in ([path for path in tests if path not in stuck], stuck) if part]
        jobs = [{"files": part, "texts": self._watched()} for part in parts]
        plan = {
            **{"common": common, "jobs": jobs, "wall_ms": 1000 * min(LOOK_S, seconds)},
            **{"start_ms": START_MS, "rivals": 0, "linger_ms": 0},
        }
        began_s = time.monotonic()
        told = await run_driver(self._driver, self.project, plan, min(LOOK_S, seconds))
        self.round_s = time.monotonic() - began_s
        looks = [listed(line.get("tests")) for line in told if line.get("event") == "look"]
        seen = [one for tests_seen in looks for one in tests_seen if isinstance(one, dict)]
        if self._is_by_status:  # the driver may know better which files the command loads
            common["files"] = tests = sorted({owner_of(str(one["id"])) for one in seen if one.get("id")})
        whole = self._is_mute or self._is_by_status
        partly = {*tests} if whole else {path for path in tests if path in self._before}
        runs = tuple(
            runs_of(
                *(seen, texts, self._driver.fault),
                lambda name: name in self._before or owner_of(name) in partly,
            )
        )
        ended = {run.id: run.outcome for run in runs}
        self._has_run = any("::" in name for name in ended)
        self._never_ends = self._never_ends and not self._has_run
        failing = [name for name, status in self._before.items() if status not in ("passed", "skipped")]
        guiding = tuple(name for name in failing if ended.get(name) == "failed")
        unknown = [name for name in ended if name not in self._before and owner_of(name) in partly]
        guiding += tuple(name for name in unknown if ended[name] == "failed")
        late = [line.get("number") for line in told if line.get("late") is True]
        if stuck and len(parts) - 1 in late:  # a runner that waits so long for a file told of it
            self._never_ends, guiding = True, (*guiding, *stuck)
        if self._is_mute:  # files stand for their tests where none was seen here either
            guiding = tuple(n for n, how in ended.items() if how == "failed") or tuple(tests)
        passed = (name for name, how in self._before.items() if how == "passed")
        wanted = [name for name in (*passed, *unknown) if ended.get(name) == "passed"]
        differing = () if self._is_by_status and guiding else differing_of(self._before, ended)
        took_s = seconds_of(seen)
        least_s = MUTE_WALL_S if self._never_ends else 0.0
        most_cpu_ms = max(LEAST_CPU_MS, CPU_PATIENCE * longest_ms(seen))
        busy_s = LOADED * most_cpu_ms / 1000 if self._driver.watched else 0.0
        self._wall_s = max(least_s, self._driver.least_wall_s, PATIENCE * took_s, busy_s)
        ignored = sorted({name for name, how in ended.items() if how == "failed"} - {*guiding})
        self._common = {
            **{**common, "guiding": list(guiding), "wanted": [*wanted, *guiding]},
            **{
                "covering": covering_of(runs),
                "ignored": ignored,
                "alone": not any("::" not in name for name in guiding),
                "most_cpu_ms": most_cpu_ms,
            },
        }
        return Spectrum(
            tests=runs,
            collected=tuple(ended),
            known=frozenset(guiding),
            guiding=guiding,
            disagreements=differing,
            compared=len(self._before),
            traced=sum(bool(run.lines) for run in runs),
            suite_s=took_s,
        )

    @property
    def by_own_runner(self) -> bool:
        """Whether the tests are run by the project's own runner, and not by a stand-in of ours."""
        return bool(self._driver.runs)

    def failed_again(self, seen: Spectrum) -> frozenset[str]:
        """Ids of the user's run that failed there and in a look."""
        failing = {name for name, how in self._before.items() if how not in ("passed", "skipped")}
        return frozenset(failing if self._is_by_status and seen.guiding else failing & {*seen.guiding})

    @property
    def _is_mute(self) -> bool:
        """Whether the command was stopped before its tests were reported, such as in an endless loop."""
        return " ".join(self.project.argv) in self._before and not self._is_by_status

    def _watched(self) -> dict[str, str]:
        """The files whose loops a look can end, where the driver knows how."""
        watched, texts = self._driver.watched, self.project.texts
        made = {p: watched(p, text, self.language) for p, text in texts.items()} if watched else {}
        return {path: text for path, text in made.items() if text != texts[path]}

    def _test_files(self) -> list[str]:
        """What the runner is to load."""
        if self._is_mute or self._is_by_status:
            return self.project.named_tests()
        return sorted({name.partition("::")[0] for name in self._before})

    async def try_all(
        self,
        proposals: Sequence[Proposal],
        found: SearchResult,
        limits: SearchLimits,
        is_suspicious: Callable[[Proposal], bool] = lambda proposal: False,
    ) -> None:
        """Try candidates in their order until some pass and a short look found no more, or time is up.

        None is tried where `is_lost` is true then. Where all that pass are suspicious, others are looked for
        too, for a share of the time.

        Raises:
            SandboxError: The wall failed.
        """
        waiting = list(proposals[: limits.max_candidates - found.tried_count])
        usual = MUTE_ROUND if self._never_ends else self._driver.round
        size = usual if self.tried else min(usual, self._driver.round // FIRST_PART)
        while waiting and not found.ending:
            left_s = found.deadline_s(limits) - (time.monotonic() - self.began_s)
            if left_s <= self._driver.least_wall_s:
                found.ending = f"{found.deadline_s(limits):g} s are over"
                break
            batch, waiting = waiting[: self._driver.at_once * size], waiting[self._driver.at_once * size :]
            size = usual
            await self.try_batch(batch, found, left_s)
            if self.is_lost:
                return
            now_s = time.monotonic() - self.began_s
            if not all(map(is_suspicious, found.plausible)):
                found.first_repair_s = now_s
            if found.first_repair_s is not None or (found.plausible and now_s > RECOMMENDED_SHARE * limits.max_seconds):
                found.ending = "the likeliest changes were tried"
        if not found.ending:
            is_cut = found.tried_count >= limits.max_candidates
            found.ending = f"{limits.max_candidates} candidates were tried" if is_cut else ALL_TRIED

    async def try_batch(self, batch: Sequence[Proposal], found: SearchResult, seconds: float) -> None:
        """Try candidates in one round of all processes.

        Raises:
            SandboxError: The wall failed.
        """
        told = await self._rounds(batch, seconds, _passes)
        self.is_lost = self._sees_none([line for _, line in told])
        if not self.is_lost:
            for proposal, line in told:
                self._note(proposal, line, found)

    async def _rounds(self, batch: Sequence[Proposal], seconds: float, enough: Enough) -> list[Told]:
        """A start of the driver for each process."""
        many = self._driver.at_once
        rounds = [self._round(batch[n::many], seconds) for n in range(many) if batch[n::many]]
        return await run_rounds(rounds, enough)

    async def passing(self, proposals: Sequence[Proposal], seconds: float) -> dict[int, bool]:
        """Place of a candidate -> whether all tests pass with it, as far as they were tried in the time.

        Raises:
            SandboxError: The wall failed.
        """
        told = await self._rounds(proposals, seconds, lambda answers: False)
        return {proposals.index(proposal): line.get("ok") is True for proposal, line in told}

    @property
    def most_rivals(self) -> int:
        """Changes that are tried after the first that passes."""
        return MUTE_RIVALS if self._never_ends else self._driver.rivals

    def _sees_none(self, told: Sequence[Mapping[str, Any]]) -> bool:
        """Whether no test was seen yet, though a candidate came to its end or all processes ended before."""
        names = [str(line.get("failed", ""))[:MOST_STACK_CHARS] for line in told]
        seen = [line.get("ok") is True for line in told] + ["::" in name for name in names]
        self._has_run = self._has_run or any(seen)
        lost = [line for line in told if line.get("lost") is True]
        empty = any(line.get("failed") == "" and line.get("late") is not True for line in told)
        return bool(told) and not self._has_run and (empty or len(lost) == len(told))

    async def _round(self, proposals: Sequence[Proposal], left_s: float) -> list[Told]:
        """One start of the driver."""
        jobs = [(p, self._driver.job(p, self.project.texts[p.path], self.language)) for p in proposals]
        able = [(proposal, job) for proposal, job in jobs if job is not None]
        plan = {
            **{"common": self._common, "jobs": [job for _, job in able], "wall_ms": 1000 * self._wall_s},
            **{"start_ms": START_MS, "rivals": self.most_rivals, "linger_ms": LINGER_MS},
        }
        told = await run_driver(self._driver, self.project, plan, left_s)
        return [(able[number][0], line) for number, line in select_trial_reports(told, len(able)).items()]

    def _note(self, proposal: Proposal, line: Mapping[str, Any], found: SearchResult) -> None:
        found.tried_count += 1
        self.tried.add((proposal.path, proposal.edits))
        if line.get("ok") is True:
            found.plausible.append(proposal)
            return
        if (trial := trial_of(line, self._common["guiding"])) is not None:
            found.partial.append((proposal, trial))


def _passes(told: Sequence[Told]) -> bool:
    """Whether a candidate passes in a round."""
    return any(line.get("ok") is True for _, line in told)

"""The tools of an agent: pure functions of its copy of the project, but for the shell and the tests.

The copy is held here, as text over the files that it began with. Each command is run behind a wall of its own
on the files of that moment, and what it changed is taken over; nothing of the agent's lives on between steps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from suture.agents import describe_fact
from suture.agents.conversation.agent_commands import Command
from suture.agents.conversation.project_copy import ProjectCopy, changed_texts
from suture.agents.conversation.task_briefing import MOST_FACTS, briefing_of
from suture.agents.replies.edit_blocks import apply_edits, may_create, split_edits
from suture.core.records import Candidate, Verdict
from suture.errors import EditDoesNotApply
from suture.judge import Suite, check_candidate
from suture.judge import protected_files as refused_files
from suture.loop.context import RunContext
from suture.loop.policy.attempts import tally
from suture.project.workspace import overlay, text_of

SHELL_S = 60.0
"""Wall-clock seconds of one command of the shell; a run of the tests' command has no more either."""
MOST_SHOWN = 6000
"""Characters of one observation, head and tail each half."""
MOST_LINES = 200
"""Of a file that is shown without a range."""
MOST_FOUND = 40
MOST_LISTED = 200
LINES = re.compile(r"^(.+?)(?::(\d{1,7})(?:-(\d{1,7}))?)?$")


@dataclass(frozen=True, kw_only=True)
class Done:
    """What came of a tool: what the agent is told, all that is changed now, and whether all tests pass."""

    observation: str
    changed: Mapping[str, str]
    passed: bool = False


@dataclass(frozen=True, kw_only=True)
class AgentTools:
    """What an agent works on.

    Attributes:
        files: The copy as it was when its turn began: path -> content.
        parent: The candidate that it was made from: path -> text.
        suite: What decides; its tests are the agent's `run_tests` too.
        context: The run.
    """

    files: Mapping[str, bytes]
    parent: Mapping[str, str]
    suite: Suite
    context: RunContext

    async def use(self, command: Command, changed: Mapping[str, str]) -> Done:
        """Carry out a command; what goes wrong with it is told, and is no exception.

        Raises:
            BudgetExceeded: The time is up.
            SandboxError: The wall failed.
        """
        now = overlay(self.files, changed)
        match command.tool:
            case "shell":
                done = await self._shell(command.given, now, changed)
            case "edit":
                done = self._edit(command.given, now, changed)
            case "run_tests":
                done = await self._run_tests(changed)
            case "create_file":
                done = self._create(command.given, now, changed)
            case "list_files":
                done = Done(observation=_listed(command.given, now), changed=changed)
            case "read_file":
                done = Done(observation=_read(command.given, now), changed=changed)
            case _:
                done = Done(observation=_search(command.given, now), changed=changed)
        return Done(observation=shortened(done.observation), changed=done.changed, passed=done.passed)

    async def _shell(self, line: str, now: Mapping[str, bytes], changed: Mapping[str, str]) -> Done:
        if not line:
            return Done(observation="There was no command.", changed=changed)
        left_s = self.context.budget.remaining_s()
        most_s = min(SHELL_S, self.suite.settings.test_wall_s)
        seconds = most_s if left_s is None else max(1.0, min(most_s, left_s / 2))
        async with self.context.budget.time_limit():
            ran = await ProjectCopy.of(self.suite).run(line, now, seconds, keep_bytes=2 * MOST_SHOWN)
        texts, left_out = changed_texts(ran.changes, now)
        blocked = self._blocked({**self.parent, **changed, **texts})
        closed = {*refused_files(texts, self.suite), *blocked} & texts.keys()
        notes = {"timeout": f"its time was up after {seconds:.0f} s", "memory": "it held too much memory"}
        said = [f"({notes.get(ran.ended, f'exit code {ran.code}')})", ran.output.strip()]
        if closed:
            said.append(f"(put back, for no candidate may change it: {', '.join(sorted(closed))})")
        said += [f"(the safety scan: {why})" for path, why in blocked.items() if path in texts]
        if ran.changes.deleted:
            said.append(f"(put back, for nothing can be deleted: {', '.join(ran.changes.deleted[:20])})")
        if left_out:
            said.append(f"(no part of the change: {', '.join(left_out[:20])})")
        kept = {path: text for path, text in texts.items() if path not in closed}
        return Done(observation="\n".join(filter(None, said)), changed=self._differing({**changed, **kept}))

    def _edit(self, reply: str, now: Mapping[str, bytes], changed: Mapping[str, str]) -> Done:
        closed = set(refused_files(dict.fromkeys(now, ""), self.suite))
        open_ones = {path: text_of(content) for path, content in now.items() if path not in closed}
        try:
            blocks, _ = split_edits(reply)
            if not blocks:
                return Done(observation="EditError: there is no search/replace block.", changed=changed)
            texts = apply_edits(blocks, open_ones, set(now))
        except EditDoesNotApply as fault:
            protected = [path for path in closed if path in reply]
            why = f" ({', '.join(sorted(protected))}: protected)" if protected else ""
            return Done(observation=f"EditError: {fault.message}{why}", changed=changed)
        blocked = self._blocked({**self.parent, **changed, **texts})
        refused = sorted({*refused_files(texts, self.suite), *blocked} & texts.keys())
        kept = {path: text for path, text in texts.items() if path not in refused}
        observation = f"Changed {', '.join(kept)}." if kept else "Nothing was changed."
        if refused:
            observation += f" EditError: no candidate may write {', '.join(refused)}."
            observation += "".join(
                f" The safety scan: {why}." for path, why in blocked.items() if path in texts
            )
        return Done(observation=observation, changed=self._differing({**changed, **kept}))

    def _create(self, given: str, now: Mapping[str, bytes], changed: Mapping[str, str]) -> Done:
        path, _, content = given.partition("\n")
        path = path.strip().removeprefix("./")
        if path in self.files or not may_create(path, now.keys() - {path}):
            why = "it is there already: use edit" if path in self.files else "no file can be made there"
            return Done(observation=f"CreateError: {path[:200]!r}: {why}.", changed=changed)
        if refused_files({path: content}, self.suite):
            return Done(observation=f"CreateError: no candidate may write {path}.", changed=changed)
        if blocked := self._blocked({**self.parent, **changed, path: content}).get(path):
            observation = f"CreateError: no candidate may write {path}. The safety scan: {blocked}."
            return Done(observation=observation, changed=changed)
        written = {**changed, path: content.rstrip("\n") + "\n"}
        if why := self._blocked({**self.parent, **written}).get(path, ""):
            return Done(observation=f"CreateError: the safety scan: {why}.", changed=changed)
        return Done(observation=f"{path} is written.", changed=self._differing(written))

    async def _run_tests(self, changed: Mapping[str, str]) -> Done:
        candidate = Candidate(files={**self.parent, **changed}, origin="repair")
        async with self.context.budget.time_limit():
            verdict = await check_candidate(candidate, self.suite)
        threshold = self.context.settings.loop.trust_threshold
        passed, failed, _ = tally(verdict, None, threshold)
        if passed and not failed:
            return Done(observation="Every test passes.", changed=changed, passed=True)
        return Done(observation=_cards(verdict, passed, failed, self.context), changed=changed)

    def _blocked(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Files with what a rule of the safety scan blocks -> why."""
        found = self.context.findings_in(Candidate(files=texts, origin="repair"))
        return {one.path: one.as_words() for one in reversed(found) if one.level == "block"}

    def _differing(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Without what the copy began with."""
        return {
            path: text
            for path, text in sorted(texts.items())
            if path not in self.files or text_of(self.files[path]) != text
        }


def _cards(verdict: Verdict, passed: int, failed: int, context: RunContext) -> str:
    known = briefing_of(verdict, (), context)
    lines = [f"{passed} of {passed + failed} tests pass. What the others saw:"]
    lines += [f"- {describe_fact(fact)}" for fact in known.facts[:MOST_FACTS]]
    return "\n".join([*lines, *([known.output] if known.as_a_whole or not known.facts else [])])


def _read(given: str, now: Mapping[str, bytes]) -> str:
    match = LINES.match(given)
    path = match[1].removeprefix("./") if match else ""
    if match is None or path not in now:
        near = [name for name in sorted(now) if path and name.endswith(path.rpartition("/")[2])]
        hint = f" Did you mean {', '.join(near[:5])}?" if near else ""
        return f"ReadError: there is no file {given[:200]!r}.{hint}"
    lines = text_of(now[path]).split("\n")
    first = max(1, int(match[2] or 1))
    last = min(len(lines), int(match[3] or match[2] or MOST_LINES))
    shown = [f"{number:5}  {lines[number - 1]}" for number in range(first, last + 1)]
    more = f"\n(the file has {len(lines)} lines)" if last < len(lines) or first > 1 else ""
    return ("\n".join(shown) or "(nothing)") + more


def _listed(given: str, now: Mapping[str, bytes]) -> str:
    folder = given.strip().removeprefix("./").rstrip("/")
    found = [path for path in sorted(now) if not folder or folder == "." or path.startswith(f"{folder}/")]
    more = f"\n... and {len(found) - MOST_LISTED} more" if len(found) > MOST_LISTED else ""
    return "\n".join(found[:MOST_LISTED]) + more if found else f"There is no file below {given[:200]!r}."


def _search(given: str, now: Mapping[str, bytes]) -> str:
    if not given:
        return "SearchError: there is no text to look for."
    found = [
        f"{path}:{number}: {line.strip()[:200]}"
        for path, content in sorted(now.items())
        if b"\0" not in content
        for number, line in enumerate(text_of(content).split("\n"), 1)
        if given in line
    ]
    more = f"\n... and {len(found) - MOST_FOUND} more" if len(found) > MOST_FOUND else ""
    return "\n".join(found[:MOST_FOUND]) + more if found else f"No file holds {given[:200]!r}."


def shortened(text: str) -> str:
    """An observation, cut in the middle where it is long."""
    if len(text) <= MOST_SHOWN:
        return text
    half = MOST_SHOWN // 2
    return f"{text[:half]}\n... {len(text) - MOST_SHOWN} characters are cut ...\n{text[-half:]}"

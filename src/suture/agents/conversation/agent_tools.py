"""Carry out an agent's commands. Files are read and written in memory; the shell and the tests use the sandbox.

The agent's changes are texts over the files that its turn began with. Each shell command runs in a new copy of
the project with these changes, and the changes that it makes are added to them. No process of the agent
survives a step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from suture.agents import tuning
from suture.agents.context.deciding_checks import count_deciding_checks
from suture.agents.conversation.agent_commands import AgentCommand
from suture.agents.conversation.agent_turn import AgentTurn
from suture.agents.conversation.project_copy import run_in_project_copy, select_text_changes
from suture.agents.conversation.task_briefing import make_briefing
from suture.agents.prompting.prompt_parts import describe_fact
from suture.agents.replies.edit_blocks import apply_edits, is_creatable, split_edits
from suture.agents.tools.react_loop import cut_middle
from suture.core.records import Candidate
from suture.errors import EditDoesNotApply
from suture.judge import check_candidate, find_protected_files
from suture.project.workspace import decode_text, overlay_candidate

FILE_RANGE = re.compile(r"^(.+?)(?::(\d{1,7})(?:-(\d{1,7}))?)?$")
"""A path, with a line or a range of lines behind it: `a.py`, `a.py:3` or `a.py:3-9`."""


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """The observation that the agent sees, and all files that differ from the beginning of the turn."""

    observation: str
    changed: Mapping[str, str]
    passed: bool = False


@dataclass(frozen=True, kw_only=True)
class AgentTools:
    """The tools of one turn."""

    turn: AgentTurn

    async def use(self, command: AgentCommand, changed: Mapping[str, str]) -> ToolResult:
        """Carry out a command after the changes so far (path -> text). The observation says whether it failed."""
        files = overlay_candidate(self.turn.files, changed)
        match command.tool:
            case "shell":
                result = await self._run_shell(command.input, files, changed)
            case "edit":
                result = self._edit(command.input, files, changed)
            case "run_tests":
                result = await self._run_tests(changed)
            case "create_file":
                result = self._create_file(command.input, files, changed)
            case "list_files":
                result = ToolResult(observation=_list_files(command.input, files), changed=changed)
            case "read_file":
                result = ToolResult(observation=_read_file(command.input, files), changed=changed)
            case _:  # The only other tool is `search`; `submit` never gets here.
                result = ToolResult(observation=_search(command.input, files), changed=changed)
        return replace(result, observation=cut_middle(result.observation, tuning.MAX_COMMAND_OUTPUT_CHARS))

    async def _run_shell(
        self, line: str, files: Mapping[str, bytes], changed: Mapping[str, str]
    ) -> ToolResult:
        if not line:
            return ToolResult(observation="There was no command.", changed=changed)
        suite, budget = self.turn.suite, self.turn.calls.budget
        remaining_s = budget.remaining_s()
        limit_s = min(tuning.MAX_SHELL_S, suite.settings.test_timeout_s)
        # A command gets half of the remaining time, so that time is left after it. The share is chosen by
        # judgement; not measured.
        timeout_s = limit_s if remaining_s is None else max(1.0, min(limit_s, remaining_s / 2))
        async with budget.time_limit():
            run = await run_in_project_copy(
                suite, line, files, timeout_s, max_output_bytes=2 * tuning.MAX_COMMAND_OUTPUT_CHARS
            )
        # Binary files and new hidden files are left out.
        texts, left_out = select_text_changes(run.changes, files)
        allowed, refused, scan_reasons = self._check_changes(texts, changed)
        endings = {
            "timeout": f"its time was up after {timeout_s:.0f} s",
            "memory": "it held too much memory",
        }
        lines = [f"({endings.get(run.ending, f'exit code {run.exit_code}')})", run.output.strip()]
        if refused:
            lines.append(f"(put back, for no candidate may change it: {', '.join(refused)})")
        lines += [f"(the safety scan: {reason})" for reason in scan_reasons]
        if run.changes.deleted:
            lines.append(
                f"(put back, for nothing can be deleted: {', '.join(run.changes.deleted[: tuning.MAX_NAMED_PATHS])})"
            )
        if left_out:
            lines.append(f"(no part of the change: {', '.join(left_out[: tuning.MAX_NAMED_PATHS])})")
        return ToolResult(
            observation="\n".join(filter(None, lines)),
            changed=self._without_unchanged({**changed, **allowed}),
        )

    def _edit(self, text: str, files: Mapping[str, bytes], changed: Mapping[str, str]) -> ToolResult:
        protected = set(find_protected_files(dict.fromkeys(files, ""), self.turn.suite))
        editable = {path: decode_text(content) for path, content in files.items() if path not in protected}
        try:
            blocks, _ = split_edits(text)
            if not blocks:
                return ToolResult(observation="EditError: there is no search/replace block.", changed=changed)
            texts = apply_edits(blocks, editable, set(files))
        except EditDoesNotApply as fault:
            mentioned = sorted(path for path in protected if path in text)
            why = f" ({', '.join(mentioned)}: protected)" if mentioned else ""
            return ToolResult(observation=f"EditError: {fault.message}{why}", changed=changed)
        allowed, refused, scan_reasons = self._check_changes(texts, changed)
        observation = f"Changed {', '.join(allowed)}." if allowed else "Nothing was changed."
        if refused:
            observation += f" EditError: no candidate may write {', '.join(refused)}."
            observation += "".join(f" The safety scan: {reason}." for reason in scan_reasons)
        return ToolResult(observation=observation, changed=self._without_unchanged({**changed, **allowed}))

    def _check_changes(
        self, texts: Mapping[str, str], changed: Mapping[str, str]
    ) -> tuple[dict[str, str], list[str], list[str]]:
        """Return `(allowed files, refused paths, reasons of the safety scan)` for newly written files."""
        blocked = self._blocked_files({**self.turn.parent_files, **changed, **texts})
        refused = sorted({*find_protected_files(texts, self.turn.suite), *blocked} & texts.keys())
        allowed = {path: text for path, text in texts.items() if path not in refused}
        return allowed, refused, [reason for path, reason in blocked.items() if path in texts]

    def _create_file(self, text: str, files: Mapping[str, bytes], changed: Mapping[str, str]) -> ToolResult:
        path, _, content = text.partition("\n")
        path = path.strip().removeprefix("./")
        written = {**changed, path: content.rstrip("\n") + "\n"}
        error = ""
        # A file that was created earlier in this turn may be written again, so `path` itself does not count.
        if path in self.turn.files or not is_creatable(path, files.keys() - {path}):
            why = "it is there already: use edit" if path in self.turn.files else "no file can be made there"
            error = f"{path[: tuning.MAX_ECHOED_CHARS]!r}: {why}."
        elif find_protected_files({path: content}, self.turn.suite):
            error = f"no candidate may write {path}."
        elif blocked := self._blocked_files({**self.turn.parent_files, **written}).get(path):
            error = f"no candidate may write {path}. The safety scan: {blocked}."
        if error:
            return ToolResult(observation=f"CreateError: {error}", changed=changed)
        return ToolResult(observation=f"{path} is written.", changed=self._without_unchanged(written))

    async def _run_tests(self, changed: Mapping[str, str]) -> ToolResult:
        candidate = Candidate(files={**self.turn.parent_files, **changed}, origin="repair")
        async with self.turn.calls.budget.time_limit():
            verdict = await check_candidate(candidate, self.turn.suite)
        passed, failed, _ = count_deciding_checks(verdict, baseline=None, threshold=self.turn.trust_threshold)
        if passed and not failed:
            return ToolResult(observation="Every test passes.", changed=changed, passed=True)
        briefing = make_briefing(self.turn.suite.task, verdict, self.turn.trust_threshold)
        lines = [f"{passed} of {passed + failed} tests pass. What the others saw:"]
        lines += [f"- {describe_fact(fact)}" for fact in briefing.facts[: tuning.MAX_LISTED_FACTS]]
        if briefing.judged_by_exit_status or not briefing.facts:
            lines.append(briefing.output)
        return ToolResult(observation="\n".join(lines), changed=changed)

    def _blocked_files(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Return the files that the safety scan blocks, each with its reason."""
        findings = self.turn.scan(Candidate(files=texts, origin="repair"))
        # Reversed, so that the first finding of a file is its reason.
        return {finding.path: finding.render() for finding in reversed(findings) if finding.level == "block"}

    def _without_unchanged(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Leave out files that are as they were when the turn began."""
        files = self.turn.files
        return {
            path: text
            for path, text in sorted(texts.items())
            if path not in files or decode_text(files[path]) != text
        }


def _read_file(text: str, files: Mapping[str, bytes]) -> str:
    match = FILE_RANGE.match(text)
    path = match[1].removeprefix("./") if match else ""
    if match is None or path not in files:
        similar = [name for name in sorted(files) if path and name.endswith(path.rpartition("/")[2])]
        hint = f" Did you mean {', '.join(similar[:5])}?" if similar else ""
        return f"ReadError: there is no file {text[: tuning.MAX_ECHOED_CHARS]!r}.{hint}"
    lines = decode_text(files[path]).split("\n")
    first = max(1, int(match[2] or 1))
    last = min(len(lines), int(match[3] or match[2] or tuning.MAX_SHOWN_LINES))
    numbered = [f"{number:5}  {lines[number - 1]}" for number in range(first, last + 1)]
    note = f"\n(the file has {len(lines)} lines)" if last < len(lines) or first > 1 else ""
    return ("\n".join(numbered) or "(nothing)") + note


def _list_files(text: str, files: Mapping[str, bytes]) -> str:
    folder = text.strip().removeprefix("./").rstrip("/")
    paths = [path for path in sorted(files) if not folder or folder == "." or path.startswith(f"{folder}/")]
    return (
        join_limited(paths, tuning.MAX_LISTED_FOLDER_PATHS)
        or f"There is no file below {text[: tuning.MAX_ECHOED_CHARS]!r}."
    )


def _search(text: str, files: Mapping[str, bytes]) -> str:
    if not text:
        return "SearchError: there is no text to look for."
    matches = [
        f"{path}:{number}: {line.strip()[: tuning.MAX_ECHOED_CHARS]}"
        for path, content in sorted(files.items())
        if b"\0" not in content
        for number, line in enumerate(decode_text(content).split("\n"), 1)
        if text in line
    ]
    return (
        join_limited(matches, tuning.MAX_SEARCH_MATCHES)
        or f"No file holds {text[: tuning.MAX_ECHOED_CHARS]!r}."
    )


def join_limited(lines: Sequence[str], limit: int) -> str:
    """Join the first lines, and say how many more there are."""
    more = f"\n... and {len(lines) - limit} more" if len(lines) > limit else ""
    return "\n".join(lines[:limit]) + more

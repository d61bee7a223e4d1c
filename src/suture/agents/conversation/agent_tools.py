"""Carry out the tools of a conversation. Files are read and written in memory; the shell uses the sandbox.

The changes are new contents of the files that the turn began with. Each shell command runs in a new copy of the
project with these changes, and the changes that it makes are added to them. No process survives a command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from suture.agents import tuning
from suture.agents.conversation.agent_turn import AgentTurn
from suture.agents.conversation.project_copy import run_in_project_copy, select_text_changes
from suture.agents.conversation.tool_calls import ToolInputs
from suture.agents.replies.edit_problems import EditFault
from suture.agents.replies.text_edits import DiffHunk, apply_hunks
from suture.agents.tools.react_loop import cut_middle
from suture.core.records import Candidate
from suture.judge import find_protected_files, find_tidiable_files
from suture.project.workspace import decode_text, is_creatable, overlay_candidate

LINE_RANGE = re.compile(r"(\d{1,7})(?:\D+(\d{1,7}))?")
"""A line or a range of lines: `3`, `3-9` or `3, 9`."""


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """The result of a tool.

    Attributes:
        text: What the model is told.
        changed: All files that differ from the beginning of the turn: path -> text.
        failed: Whether a change could not be applied.
    """

    text: str
    changed: Mapping[str, str]
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class AgentTools:
    """The tools of one turn that read and change files.

    Attributes:
        max_chars: Characters of one result.
    """

    turn: AgentTurn
    max_chars: int

    async def use(self, inputs: ToolInputs, changed: Mapping[str, str]) -> ToolResult:
        """Carry out a call after the changes so far (path -> text). The result says whether it failed."""
        files = overlay_candidate(self.turn.files, changed)
        values = inputs.values
        match inputs.name:
            case "shell":
                return await self._run_shell(values["command"], files, changed)
            case "edit":
                return self._edit(values, files, changed)
            case "read_file":
                text = self._read(values["path"], values.get("lines", ""), files)
            case _:  # `run_tests` is the conversation's.
                text = self._search(values["text"], values.get("path", ""), files)
        return ToolResult(text=text, changed=changed)

    def check_changes(
        self, texts: Mapping[str, str], changed: Mapping[str, str]
    ) -> tuple[dict[str, str], list[str]]:
        """Return `(allowed files, why others are refused)` for newly written files.

        Args:
            texts: Path -> text of these files.
            changed: The changes before them.
        """
        protected = set(find_protected_files(texts, self.turn.suite))
        blocked = self._blocked_files({**self.turn.parent_files, **changed, **texts})
        mixed, tidiable = self.turn.suite.mixed_files, find_tidiable_files(self.turn.suite)
        refused = [
            f"the tests in {path} may not be changed, only its other code"
            if path in mixed
            else f"{path} may not be changed{', except for its layout' if path in tidiable else ''}"
            for path in sorted(protected & texts.keys())
        ]
        refused += [f"the safety scan: {reason}" for path, reason in blocked.items() if path in texts]
        allowed = {
            path: text for path, text in texts.items() if path not in protected and path not in blocked
        }
        return allowed, refused

    def add_changes(self, texts: Mapping[str, str], changed: Mapping[str, str]) -> dict[str, str]:
        """Return the changes with further files, without those that are as they were when the turn began."""
        files = self.turn.files
        return {
            path: text
            for path, text in sorted({**changed, **texts}.items())
            if path not in files or decode_text(files[path]) != text
        }

    async def _run_shell(
        self, line: str, files: Mapping[str, bytes], changed: Mapping[str, str]
    ) -> ToolResult:
        suite, budget = self.turn.suite, self.turn.calls.budget
        remaining_s = budget.remaining_s()
        limit_s = min(tuning.MAX_SHELL_S, suite.settings.test_timeout_s)
        # A command gets half of the remaining time, so that time is left after it. The share is chosen by
        # judgement; not measured.
        timeout_s = limit_s if remaining_s is None else max(1.0, min(limit_s, remaining_s / 2))
        async with budget.time_limit():
            run = await run_in_project_copy(
                suite, line, files, timeout_s, max_output_bytes=2 * self.max_chars
            )
        # Binary files and new hidden files are left out.
        texts, left_out = select_text_changes(run.changes, files)
        allowed, refused = self.check_changes(texts, changed)
        endings = {
            "timeout": f"its time was up after {timeout_s:.0f} s",
            "memory": "it used too much memory",
        }
        lines = [
            f"({endings.get(run.ending, f'exit code {run.exit_code}')})",
            cut_middle(run.output.strip(), self.max_chars),
        ]
        lines += [f"(put back: {reason})" for reason in refused]
        if run.changes.deleted:
            lines.append(
                f"(put back: nothing can be deleted: {', '.join(run.changes.deleted[: tuning.MAX_NAMED_PATHS])})"
            )
        if left_out:
            lines.append(f"(no part of the change: {', '.join(left_out[: tuning.MAX_NAMED_PATHS])})")
        return ToolResult(text="\n".join(filter(None, lines)), changed=self.add_changes(allowed, changed))

    def _edit(
        self, values: Mapping[str, str], files: Mapping[str, bytes], changed: Mapping[str, str]
    ) -> ToolResult:
        path, old, new = (
            values["path"].strip().removeprefix("./"),
            values.get("old_str", ""),
            values["new_str"],
        )
        before = decode_text(files[path]) if path in files else ""
        if path not in files and (old or not is_creatable(path, files.keys())):
            why = _suggest_paths(path, files) if old else "no file can be made there"
            return ToolResult(text=f"EditError: {_quote(path)}: {why}", changed=changed, failed=True)
        try:
            hunk = DiffHunk(old=old, new=new, may_be_part=True)
            text = apply_hunks([hunk], before) if old else f"{new.rstrip()}\n".lstrip("\n")
        except EditFault as fault:
            return ToolResult(text=fault.at(path, 1).render(), changed=changed, failed=True)
        allowed, refused = self.check_changes({path: text}, changed)
        if refused:
            return ToolResult(text=f"EditError: {'; '.join(refused)}.", changed=changed, failed=True)
        return ToolResult(text=f"{path} is changed.", changed=self.add_changes(allowed, changed))

    def _blocked_files(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Return the files that the safety scan blocks, each with its reason."""
        findings = self.turn.scan(Candidate(files=dict(texts), origin="repair"))
        # Reversed, so that the first finding of a file is its reason.
        return {finding.path: finding.render() for finding in reversed(findings) if finding.level == "block"}

    def _read(self, path: str, line_range: str, files: Mapping[str, bytes]) -> str:
        path = path.strip().removeprefix("./").rstrip("/")
        if path not in files:
            below = [name for name in sorted(files) if path in ("", ".") or name.startswith(f"{path}/")]
            return self._fit(below, "files") if below else f"ReadError: {_suggest_paths(path, files)}"
        lines = decode_text(files[path]).split("\n")
        match = LINE_RANGE.search(line_range)
        first = max(1, int(match[1])) if match else 1
        last = min(len(lines), int(match[2] or match[1])) if match else len(lines)
        if first > last:
            return f"ReadError: {path} has only {len(lines)} lines."
        width = len(str(last))
        numbered = [f"{number:{width}}  {lines[number - 1]}" for number in range(first, last + 1)]
        return self._fit(numbered, "lines", lambda count: f"; read on with lines={first + count}-{last}")

    def _search(self, text: str, path: str, files: Mapping[str, bytes]) -> str:
        if not text:
            return "SearchError: there is no text to look for."
        folder = path.strip().removeprefix("./").rstrip("/")
        matches = [
            f"{name}:{number}: {line.strip()[: tuning.MAX_ECHOED_CHARS]}"
            for name, content in sorted(files.items())
            if folder in ("", ".", name) or name.startswith(f"{folder}/")
            if b"\0" not in content
            for number, line in enumerate(decode_text(content).split("\n"), 1)
            if text in line
        ]
        return self._fit(matches, "matches") if matches else f"No file contains {_quote(text)}."

    def _fit(self, lines: Sequence[str], noun: str, how_to_go_on: Callable[[int], str] = lambda _: "") -> str:
        """Return as many of the first lines as a result may have, and say how many more there are."""
        size, count = 0, 0
        for line in lines:
            size += len(line) + 1
            if size > self.max_chars and count:
                break
            count += 1
        shown = "\n".join(cut_middle(line, self.max_chars) for line in lines[:count])
        if count == len(lines):
            return shown
        return f"{shown}\n({len(lines) - count} more {noun}{how_to_go_on(count)})"


def _suggest_paths(path: str, files: Mapping[str, bytes]) -> str:
    name = path.rpartition("/")[2]
    similar = [other for other in sorted(files) if name and other.rpartition("/")[2] == name]
    hint = f" Did you mean {', '.join(similar[: tuning.MAX_SUGGESTED_PATHS])}?" if similar else ""
    return f"there is no file {_quote(path)}.{hint}"


def _quote(text: str) -> str:
    return repr(text[: tuning.MAX_ECHOED_CHARS])

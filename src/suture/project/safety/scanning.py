"""The safety scan: find uses that a rule covers, decide which of them are new, and what happens to them."""

from __future__ import annotations

import fnmatch
import importlib.util
import logging
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from suture.core.installation import format_install_command
from suture.core.settings import SafetySettings
from suture.core.temporary_folders import temporary_folder
from suture.errors import PrerequisiteError, UsageError
from suture.project.languages import LANGUAGES, detect_file_languages
from suture.project.languages.safety_rules import UNREADABLE, SafetyLevel, SafetyRule, UnsafeUse
from suture.project.languages.safety_rules.rule import quote_code
from suture.project.python_source.parsing import parse_module
from suture.project.safety.dependencies import LEVELS, RULES, Allowed, Approval, dependency_uses, load_allowed
from suture.project.tuning import MAX_FINDINGS, MAX_SCANNED_CHARS, MAX_SCANNED_FILE_CHARS

BANDIT_RULE = re.compile(r"bandit\.B\d{3}")
"""Matches a rule's name for a test of Bandit, such as `bandit.B602`."""
LEVELS_BY_STRICTNESS: tuple[SafetyLevel, ...] = ("block", "ask", "warn", "off")


def every_rule() -> dict[str, SafetyRule]:
    """Return all rules by name: those of the languages, and those for dependencies."""
    rules = {rule.name: rule for facts in LANGUAGES.values() for rule in facts.safety_rules}
    return {**rules, **{rule.name: rule for rule in (UNREADABLE, *RULES)}}


@dataclass(frozen=True, kw_only=True)
class Levels:
    """The user's settings of the safety scan, above all the level of each rule.

    Attributes:
        exact: Name of a rule -> level that the user gave it.
        globs: (pattern of names of rules, level that the user gave them), the strictest level first.
        bandit: Whether Bandit scans Python code, too.
        approval: What happens with packages that are not allowed.
        allowed: The allowed packages.
    """

    exact: Mapping[str, SafetyLevel] = field(default_factory=dict)
    globs: tuple[tuple[str, SafetyLevel], ...] = ()
    bandit: bool = False
    approval: Approval = "ask"
    allowed: Allowed = field(default_factory=lambda: load_allowed(None))

    def level_for(self, rule: str, default: SafetyLevel = "warn") -> SafetyLevel:
        """Return the level of a rule.

        A setting that names the rule comes first, then the strictest pattern that matches it, then its default.

        Args:
            rule: Name of the rule.
            default: The level of the rule if no setting concerns it.
        """
        if rule in self.exact:
            return self.exact[rule]
        # The level of packages that are not allowed follows from `safety.approve_deps`.
        default = LEVELS[self.approval] if rule.startswith("dependency.") else default
        return next((level for glob, level in self.globs if fnmatch.fnmatchcase(rule, glob)), default)


def resolve_levels(settings: SafetySettings) -> Levels:
    """Return the levels that the settings give.

    Raises:
        UsageError: A setting names an unknown rule, or an unreadable list of allowed packages.
        PrerequisiteError: Bandit is enabled and not installed.
    """
    if settings.bandit and importlib.util.find_spec("bandit") is None:
        raise PrerequisiteError(
            "safety.bandit is set, and Bandit is not installed", remedy=format_install_command("quality")
        )
    rules = every_rule()
    exact: dict[str, SafetyLevel] = {}
    globs: list[tuple[str, SafetyLevel]] = []
    for level in LEVELS_BY_STRICTNESS:
        for name in getattr(settings, level):
            if BANDIT_RULE.fullmatch(name) or name in rules:
                exact.setdefault(name, level)
            elif "*" in name and (name.startswith("bandit.") or fnmatch.filter(rules, name)):
                globs.append((name, level))
            else:
                raise UsageError(
                    f"safety.{level}: there is no rule {name!r}",
                    remedy=f"one of {', '.join(sorted(rules))}, or bandit.B and three digits",
                )
    return Levels(
        exact=exact,
        globs=tuple(globs),
        bandit=settings.bandit,
        approval=settings.approve_deps,
        allowed=load_allowed(settings.allowed_deps),
    )


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A place where code does what a rule covers, and what happens because of it.

    Attributes:
        rule: Name of the rule.
        level: What happens because of it: `block`, `ask` or `warn`.
        path: File of the use.
        line: Line in that file, from 1.
        code: The piece of code in one line, shortened.
        reason: What is dangerous about it.
    """

    rule: str
    level: SafetyLevel
    path: str
    line: int
    code: str
    reason: str

    def render(self) -> str:
        """Return the finding in one line: place, rule, reason, code."""
        return f"{self.path}:{self.line}: {self.rule}: {self.reason}: {self.code}"


def scan_files(files: Mapping[str, str], levels: Levels) -> tuple[Finding, ...]:
    """Return the findings in files, in the order of path and line. Rules with the level `off` are ignored.

    The language of a file follows from its extension. Files in unknown languages are not scanned. A file
    that is too large is a finding of the rule `unread`.

    Args:
        files: Path -> text, not trusted.
        levels: Levels from `resolve_levels`.
    """
    rules = every_rule()
    findings: list[Finding] = []
    chars_left = MAX_SCANNED_CHARS
    python_files: dict[str, str] = {}

    def add_finding(path: str, use: UnsafeUse, why: str, default: SafetyLevel = "warn") -> None:
        level, reason = levels.level_for(use.rule, default), quote_code(why)
        if level != "off":
            finding = Finding(
                rule=use.rule, level=level, path=path, line=use.line, code=use.code, reason=reason
            )
            findings.append(finding)

    for path, text in sorted(files.items()):
        uses: Sequence[UnsafeUse] = ()
        languages = detect_file_languages((path,))
        for dependency in dependency_uses(path, text, levels.allowed, levels.approval):
            add_finding(path, dependency.use, dependency.why)
        if languages and (len(text) > MAX_SCANNED_FILE_CHARS or len(text) > chars_left):
            uses = (UnsafeUse(rule=UNREADABLE.name, line=1, code=f"{len(text)} characters"),)
        elif languages:
            chars_left -= len(text)
            facts = LANGUAGES[languages[0]]
            uses = tuple(facts.find_unsafe_uses(path, text)) if facts.find_unsafe_uses else ()
            if facts.parsed:
                python_files[path] = text
        for use in uses:
            add_finding(path, use, rules[use.rule].why, rules[use.rule].level)
    if levels.bandit:
        for path, use, why in bandit_uses(python_files):
            add_finding(path, use, why)
    return tuple(sorted(findings, key=lambda finding: (finding.path, finding.line)))


def scan_change(before: Mapping[str, str], after: Mapping[str, str], levels: Levels) -> tuple[Finding, ...]:
    """Return the new findings of a change, the strictest first, at most `MAX_FINDINGS`.

    A finding is not new if one of the same rule with the same code existed before in any of these files. Nor is
    it if it replaces another finding of its rule, which was edited: only if a rule has more findings than
    before, some of them are new.

    Args:
        before: Path -> text of the changed files before the change; new files are missing.
        after: Path -> text of these files after the change.
        levels: Levels from `resolve_levels`.
    """
    findings = scan_files({path: text for path, text in after.items() if before.get(path) != text}, levels)
    if not findings:
        return ()
    old_files = {path: text for path, text in before.items() if after.get(path) != text}
    old_counts = Counter((finding.rule, finding.code) for finding in scan_files(old_files, levels))
    unmatched: list[Finding] = []
    for finding in findings:
        if old_counts[finding.rule, finding.code] > 0:
            old_counts[finding.rule, finding.code] -= 1
        else:
            unmatched.append(finding)
    edited_counts: Counter[str] = Counter()
    for (rule, _), count in old_counts.items():
        if not rule.startswith("dependency."):  # a package that replaces another one is new
            edited_counts[rule] += count
    new_findings: list[Finding] = []
    for finding in unmatched:
        if edited_counts[finding.rule] > 0:
            edited_counts[finding.rule] -= 1
        else:
            new_findings.append(finding)
    new_findings.sort(key=lambda finding: LEVELS_BY_STRICTNESS.index(finding.level))
    return tuple(new_findings[:MAX_FINDINGS])


@dataclass(frozen=True, kw_only=True)
class BanditIssue:
    """An issue that Bandit reports.

    Attributes:
        test: Number of Bandit's test, such as `B602`.
        severity: `low`, `medium` or `high`.
    """

    path: str
    line: int
    test: str
    text: str
    severity: str


def bandit_uses(files: Mapping[str, str]) -> Iterator[tuple[str, UnsafeUse, str]]:
    """Yield (path, use, reason) of each of Bandit's issues of medium or high severity."""
    texts = {path: text for path, text in files.items() if parse_module(text) is not None}
    if not texts:
        return
    try:
        issues = bandit_issues(texts) or []  # `resolve_levels` has checked that it is installed
    except ValueError as fault:
        if len(texts) > 1:  # scan each file alone, so that only the unreadable one is a finding
            for path, text in texts.items():
                yield from bandit_uses({path: text})
        else:
            use = UnsafeUse(rule=UNREADABLE.name, line=1, code=quote_code(str(fault)))
            yield next(iter(texts)), use, UNREADABLE.why
        return
    lines = {path: text.splitlines() for path, text in texts.items()}
    for issue in issues:
        if issue.severity != "low":  # by judgement: low ones, such as each `assert`, would mostly be noise
            source = lines[issue.path]
            code = quote_code(source[issue.line - 1]) if 0 < issue.line <= len(source) else ""
            yield issue.path, UnsafeUse(rule=f"bandit.{issue.test}", line=issue.line, code=code), issue.text


def bandit_issues(files: Mapping[str, str]) -> list[BanditIssue] | None:
    """Return all issues that Bandit finds, including those that the code silences with `# nosec`.

    Return `None` if Bandit is not installed.

    Args:
        files: Path -> text that is valid Python. Paths are not trusted, so no file is written under such a
            name.

    Raises:
        ValueError: Bandit could not read a file, which the message names.
    """
    with warnings.catch_warnings(), temporary_folder("suture-bandit-") as folder:
        warnings.simplefilter("ignore", DeprecationWarning)  # of Bandit itself, about its plugins
        for logger in ("bandit", "stevedore"):  # their warnings do not concern the user
            logging.getLogger(logger).addHandler(logging.NullHandler())
        try:
            from bandit.core import config, manager
        except ImportError:
            return None
        original_paths = _write_files(files, folder)
        scan = manager.BanditManager(config.BanditConfig(), "file", quiet=True, ignore_nosec=True)
        scan.files_list = sorted(original_paths)
        scan.run_tests()
        if scan.skipped:
            raise ValueError(f"Bandit could not read {original_paths[scan.skipped[0][0]]}")
        return [
            BanditIssue(
                path=original_paths[issue.fname],
                line=issue.lineno,
                test=issue.test_id,
                text=issue.text,
                severity=str(issue.severity).lower(),
            )
            for issue in scan.get_issue_list()
        ]


def _write_files(texts: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Write files under generated names, and return generated path -> original path."""
    original_paths: dict[str, str] = {}
    for number, (path, text) in enumerate(texts.items()):
        file = folder / f"{number}.py"
        file.write_text(text, "utf-8", "surrogateescape")
        original_paths[str(file)] = path
    return original_paths

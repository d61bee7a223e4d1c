"""The safety scan: find uses that a rule covers, decide which of them are new, and what happens with them."""

from __future__ import annotations

import fnmatch
import importlib.util
import logging
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from suture.core.settings import SafetySettings
from suture.errors import PrerequisiteError, UsageError
from suture.project.languages import LANGUAGES, detect_file_languages
from suture.project.languages.safety_rules import UNREADABLE, SafetyLevel, SafetyRule, UnsafeUse
from suture.project.languages.safety_rules.rule import quote_code
from suture.project.python_source.parsing import parse_module
from suture.project.safety.dependencies import LEVELS, RULES, Allowed, Approval, dependency_uses, load_allowed
from suture.project.tuning import MAX_FINDINGS, MAX_SCANNED_CHARS, MAX_SCANNED_FILE_CHARS

BANDIT_REMEDY = "pip install 'suture[quality]'"
BANDIT = re.compile(r"bandit\.B\d{3}")
STRICTEST: tuple[SafetyLevel, ...] = ("block", "ask", "warn", "off")


def every_rule() -> dict[str, SafetyRule]:
    """Return all rules by name: those of the languages, and those for dependencies."""
    rules = {rule.name: rule for facts in LANGUAGES.values() for rule in facts.safety_rules}
    return {**rules, **{rule.name: rule for rule in (UNREADABLE, *RULES)}}


@dataclass(frozen=True, kw_only=True)
class Levels:
    """The level of each rule.

    Attributes:
        exact: Name of a rule -> level that the user gave it.
        globs: Pattern of names -> level, the strictest first.
        bandit: Whether Bandit scans Python code, too.
        approval: What happens with packages that are not allowed.
        allowed: The allowed packages.
    """

    exact: Mapping[str, SafetyLevel] = field(default_factory=dict)
    globs: tuple[tuple[str, SafetyLevel], ...] = ()
    bandit: bool = False
    approval: Approval = "ask"
    allowed: Allowed = field(default_factory=lambda: load_allowed(None))

    def level_for(self, rule: str, own: SafetyLevel = "warn") -> SafetyLevel:
        """Return the level of a rule: that of a setting that names it, of the strictest matching pattern, or
        its default.
        """
        if rule in self.exact:
            return self.exact[rule]
        own = LEVELS[self.approval] if rule.startswith("dependency.") else own
        return next((level for glob, level in self.globs if fnmatch.fnmatchcase(rule, glob)), own)


def resolve_levels(settings: SafetySettings) -> Levels:
    """Return the levels that the settings give.

    Raises:
        UsageError: A setting names an unknown rule, or an unreadable list of allowed packages.
        PrerequisiteError: Bandit is enabled and not installed.
    """
    if settings.bandit and importlib.util.find_spec("bandit") is None:
        raise PrerequisiteError("safety.bandit is set, and Bandit is not installed", remedy=BANDIT_REMEDY)
    rules = every_rule()
    exact: dict[str, SafetyLevel] = {}
    globs: list[tuple[str, SafetyLevel]] = []
    for level in STRICTEST:
        for name in getattr(settings, level):
            if BANDIT.fullmatch(name) or name in rules:
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
    """A use that a rule covers.

    Attributes:
        rule: Name of the rule.
        level: What happens with it: `block`, `ask` or `warn`.
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
    found: list[Finding] = []
    left = MAX_SCANNED_CHARS
    python: dict[str, str] = {}
    for path, text in sorted(files.items()):
        uses: Sequence[UnsafeUse] = ()
        languages = detect_file_languages((path,))
        for one in dependency_uses(path, text, levels.allowed, levels.approval):
            found.append(_finding(path, one.use, one.why, levels.level_for(one.use.rule)))
        if languages and (len(text) > MAX_SCANNED_FILE_CHARS or len(text) > left):
            uses = (UnsafeUse(rule=UNREADABLE.name, line=1, code=f"{len(text)} characters"),)
        elif languages:
            left -= len(text)
            finder = LANGUAGES[languages[0]].find_unsafe_uses
            uses = tuple(finder(path, text)) if finder else ()
            if LANGUAGES[languages[0]].parsed:
                python[path] = text
        for use in uses:
            rule = rules[use.rule]
            found.append(_finding(path, use, rule.why, levels.level_for(rule.name, rule.level)))
    if levels.bandit:
        for path, use, why in bandit_uses(python):
            found.append(_finding(path, use, why, levels.level_for(use.rule)))
    findings = sorted((one for one in found if one.level != "off"), key=lambda one: (one.path, one.line))
    return tuple(findings)


def _finding(path: str, use: UnsafeUse, why: str, level: SafetyLevel) -> Finding:
    return Finding(
        rule=use.rule, level=level, path=path, line=use.line, code=use.code, reason=quote_code(why)
    )


def scan_change(before: Mapping[str, str], after: Mapping[str, str], levels: Levels) -> tuple[Finding, ...]:
    """Return the new findings of a change, at most 200, the strictest first.

    A use that existed before is no finding: a use with the same text anywhere in these files, or an edited
    one, as long as the number of uses of its rule does not grow.

    Args:
        before: Path -> text of the changed files before the change; new files are missing.
        after: Path -> text of these files after the change.
        levels: Levels from `resolve_levels`.
    """
    now = scan_files({path: text for path, text in after.items() if before.get(path) != text}, levels)
    if not now:
        return ()
    then = scan_files({path: text for path, text in before.items() if after.get(path) != text}, levels)
    same = Counter((one.rule, one.code) for one in then)
    unmatched: list[Finding] = []
    for finding in now:
        if same[finding.rule, finding.code] > 0:
            same[finding.rule, finding.code] -= 1
        else:
            unmatched.append(finding)
    # A package that replaces another one is new.
    gone = {use: count for use, count in same.items() if not use[0].startswith("dependency.")}
    edited = Counter(rule for (rule, _), count in gone.items() for _ in range(count))
    fresh: list[Finding] = []
    for finding in unmatched:
        if edited[finding.rule] > 0:
            edited[finding.rule] -= 1
        else:
            fresh.append(finding)
    order = ("block", "ask", "warn")
    return tuple(sorted(fresh, key=lambda one: order.index(one.level))[:MAX_FINDINGS])


@dataclass(frozen=True, kw_only=True)
class BanditIssue:
    """An issue that Bandit reports.

    Attributes:
        path: The file.
        line: Line in that file, from 1.
        test: Number of Bandit's test, such as `B602`.
        text: Bandit's description.
        severity: `low`, `medium` or `high`.
    """

    path: str
    line: int
    test: str
    text: str
    severity: str


def bandit_uses(files: Mapping[str, str]) -> Iterator[tuple[str, UnsafeUse, str]]:
    """Yield path, use and reason of Bandit's issues of medium and high severity.

    Args:
        files: Path -> text, of Python files.
    """
    texts = {path: text for path, text in files.items() if parse_module(text) is not None}
    if not texts:
        return
    try:
        found = bandit_issues(texts) or []  # `resolve_levels` has checked that it is installed
    except ValueError as fault:
        if len(texts) > 1:
            for path, text in texts.items():
                yield from bandit_uses({path: text})
        else:
            yield (
                next(iter(texts)),
                UnsafeUse(rule=UNREADABLE.name, line=1, code=quote_code(str(fault))),
                UNREADABLE.why,
            )
        return
    lines = {path: text.splitlines() for path, text in texts.items()}
    for issue in found:
        if issue.severity != "low":
            at = lines[issue.path]
            code = quote_code(at[issue.line - 1]) if 0 < issue.line <= len(at) else ""
            yield issue.path, UnsafeUse(rule=f"bandit.{issue.test}", line=issue.line, code=code), issue.text


def bandit_issues(files: Mapping[str, str]) -> list[BanditIssue] | None:
    """Return all issues that Bandit finds, including those that the code silences with `# nosec`.

    Args:
        files: Path -> text that is valid Python. Paths are not trusted, so no file is written under such a
            name.

    Returns:
        The issues; `None` if Bandit is not installed.

    Raises:
        ValueError: Bandit could not read a file, which the message names.
    """
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(prefix="suture-bandit-") as folder:
        warnings.simplefilter("ignore", DeprecationWarning)  # of Bandit itself, about its plugins
        for chatty in ("bandit", "stevedore"):  # their warnings do not concern the user
            logging.getLogger(chatty).addHandler(logging.NullHandler())
        try:
            from bandit.core import config, manager
        except ImportError:
            return None
        places = _write_files(files, Path(folder))
        scan = manager.BanditManager(config.BanditConfig(), "file", quiet=True, ignore_nosec=True)
        scan.files_list = sorted(places)
        scan.run_tests()
        if scan.skipped:
            raise ValueError(f"Bandit could not read {places[scan.skipped[0][0]]}")
        return [
            BanditIssue(
                path=places[issue.fname],
                line=issue.lineno,
                test=issue.test_id,
                text=issue.text,
                severity=str(issue.severity).lower(),
            )
            for issue in scan.get_issue_list()
        ]


def _write_files(texts: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Write files under generated names, and return which is which."""
    places: dict[str, str] = {}
    for number, (path, text) in enumerate(texts.items()):
        place = folder / f"{number}.py"
        place.write_text(text, "utf-8", "surrogateescape")
        places[str(place)] = path
    return places

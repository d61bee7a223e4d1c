"""The scan: what files do that a rule speaks of, which of it is new, and what becomes of it."""

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
from suture.project.languages.safety_rules.rule import quoted
from suture.project.python_source.parsing import parsed
from suture.project.safety.dependencies import LEVELS, RULES, Allowed, Approval, dependency_uses, load_allowed

NO_BANDIT = "pip install 'suture[quality]'"
BANDIT = re.compile(r"bandit\.B\d{3}")
STRICTEST: tuple[SafetyLevel, ...] = ("block", "ask", "warn", "off")
MOST_FILE_CHARS = 200_000
"""Of one file; a longer one counts as unread."""
MOST_CHARS = 1_000_000
"""Of all files together: a scan of them takes seconds."""
MOST_FINDINGS = 200
"""As many as anybody is asked about; the strictest come first."""


def every_rule() -> dict[str, SafetyRule]:
    """Every rule by its name: the languages', and ours."""
    rules = {rule.name: rule for facts in LANGUAGES.values() for rule in facts.safety_rules}
    return {**rules, **{rule.name: rule for rule in (UNREADABLE, *RULES)}}


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Which level each rule has.

    Attributes:
        exact: The name of a rule -> the level that the user gave it.
        globs: Pattern of names -> level, the strictest first.
        bandit: Whether Bandit looks at Python too.
        approval: What becomes of packages that are not allowed.
        allowed: Those that are.
    """

    exact: Mapping[str, SafetyLevel] = field(default_factory=dict)
    globs: tuple[tuple[str, SafetyLevel], ...] = ()
    bandit: bool = False
    approval: Approval = "ask"
    allowed: Allowed = field(default_factory=lambda: load_allowed(None))

    def of(self, rule: str, own: SafetyLevel = "warn") -> SafetyLevel:
        """The level of a rule: a setting that names it, the strictest pattern that fits it, else its own."""
        if rule in self.exact:
            return self.exact[rule]
        own = LEVELS[self.approval] if rule.startswith("dependency.") else own
        return next((level for glob, level in self.globs if fnmatch.fnmatchcase(rule, glob)), own)


def resolve_levels(settings: SafetySettings) -> Levels:
    """The levels that the user's settings make.

    Raises:
        UsageError: A setting names no rule, or a list of allowed packages that there is not.
        PrerequisiteError: Bandit is wanted and not installed.
    """
    if settings.bandit and importlib.util.find_spec("bandit") is None:
        raise PrerequisiteError("safety.bandit is set, and Bandit is not installed", remedy=NO_BANDIT)
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
    """Something that code does and a rule speaks of.

    Attributes:
        rule: The rule's name.
        level: What becomes of it: `block`, `ask` or `warn`.
        path: The file.
        line: Its line, from 1.
        code: The piece of code in one line, shortened.
        why: What is dangerous about it.
    """

    rule: str
    level: SafetyLevel
    path: str
    line: int
    code: str
    reason: str

    def as_words(self) -> str:
        """The finding in one line: place, rule, reason, code."""
        return f"{self.path}:{self.line}: {self.rule}: {self.reason}: {self.code}"


def scan(files: Mapping[str, str], levels: Levels) -> tuple[Finding, ...]:
    """What files do that a rule speaks of, in the order of path and line; rules that are off say nothing.

    A file's language is told by its ending; files of no known language are not looked at. What is too large
    to be looked through is a finding of the rule `unread`.

    Args:
        files: Path -> text. Not trusted.
        levels: As `resolve_levels` makes them.
    """
    rules = every_rule()
    found: list[Finding] = []
    left = MOST_CHARS
    python: dict[str, str] = {}
    for path, text in sorted(files.items()):
        uses: Sequence[UnsafeUse] = ()
        languages = detect_file_languages((path,))
        for one in dependency_uses(path, text, levels.allowed, levels.approval):
            found.append(_finding(path, one.use, one.why, levels.of(one.use.rule)))
        if languages and (len(text) > MOST_FILE_CHARS or len(text) > left):
            uses = (UnsafeUse(rule=UNREADABLE.name, line=1, code=f"{len(text)} characters"),)
        elif languages:
            left -= len(text)
            finder = LANGUAGES[languages[0]].find_unsafe_uses
            uses = tuple(finder(path, text)) if finder else ()
            if LANGUAGES[languages[0]].parsed:
                python[path] = text
        for use in uses:
            rule = rules[use.rule]
            found.append(_finding(path, use, rule.why, levels.of(rule.name, rule.level)))
    if levels.bandit:
        for path, use, why in bandit_uses(python):
            found.append(_finding(path, use, why, levels.of(use.rule)))
    findings = sorted((one for one in found if one.level != "off"), key=lambda one: (one.path, one.line))
    return tuple(findings)


def _finding(path: str, use: UnsafeUse, why: str, level: SafetyLevel) -> Finding:
    return Finding(rule=use.rule, level=level, path=path, line=use.line, code=use.code, reason=quoted(why))


def scan_change(before: Mapping[str, str], after: Mapping[str, str], levels: Levels) -> tuple[Finding, ...]:
    """What a change newly does: at most 200 findings, the strictest first.

    What the code did already is nobody's fault: a use whose text is unchanged counts as the same, wherever
    among these files it stands now, and one that was edited too, as long as there are no more of its rule.

    Args:
        before: Path -> text of the files that the change touches, as they were; those that are new lack.
        after: Path -> text of the files as the change leaves them.
        levels: As `resolve_levels` makes them.
    """
    now = scan({path: text for path, text in after.items() if before.get(path) != text}, levels)
    if not now:
        return ()
    then = scan({path: text for path, text in before.items() if after.get(path) != text}, levels)
    same = Counter((one.rule, one.code) for one in then)
    unmatched: list[Finding] = []
    for finding in now:
        if same[finding.rule, finding.code] > 0:
            same[finding.rule, finding.code] -= 1
        else:
            unmatched.append(finding)
    # A package in the place of another is another package.
    gone = {use: count for use, count in same.items() if not use[0].startswith("dependency.")}
    edited = Counter(rule for (rule, _), count in gone.items() for _ in range(count))
    fresh: list[Finding] = []
    for finding in unmatched:
        if edited[finding.rule] > 0:
            edited[finding.rule] -= 1
        else:
            fresh.append(finding)
    order = ("block", "ask", "warn")
    return tuple(sorted(fresh, key=lambda one: order.index(one.level))[:MOST_FINDINGS])


@dataclass(frozen=True, kw_only=True)
class BanditIssue:
    """What Bandit says of one place.

    Attributes:
        path: The file.
        line: Its line, from 1.
        test: Bandit's number of it, such as `B602`.
        text: In Bandit's words.
        severity: `low`, `medium` or `high`.
    """

    path: str
    line: int
    test: str
    text: str
    severity: str


def bandit_uses(files: Mapping[str, str]) -> Iterator[tuple[str, UnsafeUse, str]]:
    """Path, use and reason of what Bandit finds of middling and high severity.

    Args:
        files: Path -> text, of Python.
    """
    texts = {path: text for path, text in files.items() if parsed(text) is not None}
    if not texts:
        return
    try:
        found = bandit_issues(texts) or []  # that it is there was seen when the settings were read
    except ValueError as fault:
        if len(texts) > 1:
            for path, text in texts.items():
                yield from bandit_uses({path: text})
        else:
            yield (
                next(iter(texts)),
                UnsafeUse(rule=UNREADABLE.name, line=1, code=quoted(str(fault))),
                UNREADABLE.why,
            )
        return
    lines = {path: text.splitlines() for path, text in texts.items()}
    for issue in found:
        if issue.severity != "low":
            at = lines[issue.path]
            code = quoted(at[issue.line - 1]) if 0 < issue.line <= len(at) else ""
            yield issue.path, UnsafeUse(rule=f"bandit.{issue.test}", line=issue.line, code=code), issue.text


def bandit_issues(files: Mapping[str, str]) -> list[BanditIssue] | None:
    """Everything that Bandit finds, also where a `# nosec` of the code would silence it.

    Args:
        files: Path -> text that can be parsed; a path is not trusted, so none is written by its name.

    Returns:
        `None` where it is not installed.

    Raises:
        ValueError: It could not read a file, which the message names.
    """
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(prefix="suture-bandit-") as folder:
        warnings.simplefilter("ignore", DeprecationWarning)  # Bandit's own, about its plugins
        for chatty in ("bandit", "stevedore"):  # what they miss is no business of the user's terminal
            logging.getLogger(chatty).addHandler(logging.NullHandler())
        try:
            from bandit.core import config, manager
        except ImportError:
            return None
        places = _laid(files, Path(folder))
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


def _laid(texts: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Write files under names of ours, and say which is which: a path of a candidate is not to be trusted."""
    places: dict[str, str] = {}
    for number, (path, text) in enumerate(texts.items()):
        place = folder / f"{number}.py"
        place.write_text(text, "utf-8", "surrogateescape")
        places[str(place)] = path
    return places

"""The scan: what files do that a rule speaks of, which of it is new, and what becomes of it."""

from __future__ import annotations

import fnmatch
import importlib.util
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from suture.core.settings import SafetySettings
from suture.errors import PrerequisiteError, UsageError
from suture.project.languages import LANGUAGES, languages_of_files
from suture.project.languages.unsafe import UNREAD, Danger, SafetyRule, UnsafeUse
from suture.project.languages.unsafe.rule import quoted
from suture.project.safety.bandit import bandit_uses
from suture.project.safety.dependencies import LEVELS, RULES, Allowed, Approval, dependency_uses, load_allowed

NO_BANDIT = "pip install 'suture[quality]'"
BANDIT = re.compile(r"bandit\.B\d{3}")
STRICTEST: tuple[Danger, ...] = ("block", "ask", "warn", "off")
MOST_FILE_CHARS = 200_000
"""Of one file; a longer one counts as unread."""
MOST_CHARS = 1_000_000
"""Of all files together: a scan of them takes seconds."""
MOST_FINDINGS = 200
"""As many as anybody is asked about; the strictest come first."""


def every_rule() -> dict[str, SafetyRule]:
    """Every rule by its name: the languages', and ours."""
    rules = {rule.name: rule for facts in LANGUAGES.values() for rule in facts.safety_rules}
    return {**rules, **{rule.name: rule for rule in (UNREAD, *RULES)}}


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

    exact: Mapping[str, Danger] = field(default_factory=dict)
    globs: tuple[tuple[str, Danger], ...] = ()
    bandit: bool = False
    approval: Approval = "ask"
    allowed: Allowed = field(default_factory=lambda: load_allowed(None))

    def of(self, rule: str, own: Danger = "warn") -> Danger:
        """The level of a rule: a setting that names it, the strictest pattern that fits it, else its own."""
        if rule in self.exact:
            return self.exact[rule]
        own = LEVELS[self.approval] if rule.startswith("dependency.") else own
        return next((level for glob, level in self.globs if fnmatch.fnmatchcase(rule, glob)), own)


def levels_of(settings: SafetySettings) -> Levels:
    """The levels that the user's settings make.

    Raises:
        UsageError: A setting names no rule, or a list of allowed packages that there is not.
        PrerequisiteError: Bandit is wanted and not installed.
    """
    if settings.bandit and importlib.util.find_spec("bandit") is None:
        raise PrerequisiteError("safety.bandit is set, and Bandit is not installed", remedy=NO_BANDIT)
    rules = every_rule()
    exact: dict[str, Danger] = {}
    globs: list[tuple[str, Danger]] = []
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
    level: Danger
    path: str
    line: int
    code: str
    why: str

    def as_words(self) -> str:
        """The finding in one line: place, rule, reason, code."""
        return f"{self.path}:{self.line}: {self.rule}: {self.why}: {self.code}"


def scan(files: Mapping[str, str], levels: Levels) -> tuple[Finding, ...]:
    """What files do that a rule speaks of, in the order of path and line; rules that are off say nothing.

    A file's language is told by its ending; files of no known language are not looked at. What is too large
    to be looked through is a finding of the rule `unread`.

    Args:
        files: Path -> text. Not trusted.
        levels: As `levels_of` makes them.
    """
    rules = every_rule()
    found: list[Finding] = []
    left = MOST_CHARS
    python: dict[str, str] = {}
    for path, text in sorted(files.items()):
        uses: Sequence[UnsafeUse] = ()
        languages = languages_of_files((path,))
        for one in dependency_uses(path, text, levels.allowed, levels.approval):
            found.append(_finding(path, one.use, one.why, levels.of(one.use.rule)))
        if languages and (len(text) > MOST_FILE_CHARS or len(text) > left):
            uses = (UnsafeUse(rule=UNREAD.name, line=1, code=f"{len(text)} characters"),)
        elif languages:
            left -= len(text)
            finder = LANGUAGES[languages[0]].unsafe_uses
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


def _finding(path: str, use: UnsafeUse, why: str, level: Danger) -> Finding:
    return Finding(rule=use.rule, level=level, path=path, line=use.line, code=use.code, why=quoted(why))


def new_findings(before: Mapping[str, str], after: Mapping[str, str], levels: Levels) -> tuple[Finding, ...]:
    """What a change newly does: at most 200 findings, the strictest first.

    What the code did already is nobody's fault: a use whose text is unchanged counts as the same, wherever
    among these files it stands now, and one that was edited too, as long as there are no more of its rule.

    Args:
        before: Path -> text of the files that the change touches, as they were; those that are new lack.
        after: Path -> text of the files as the change leaves them.
        levels: As `levels_of` makes them.
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

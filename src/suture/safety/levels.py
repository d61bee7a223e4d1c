"""What becomes of each rule's findings: the user's settings over the rules' own levels."""

from __future__ import annotations

import fnmatch
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from suture.errors import PrerequisiteError, UsageError
from suture.languages import LANGUAGES
from suture.languages.unsafe import UNREAD, Danger, SafetyRule
from suture.safety.dependencies import LEVELS, RULES, Allowed, Approval, load_allowed
from suture.settings import SafetySettings

NO_BANDIT = "pip install 'suture[quality]'"
BANDIT = re.compile(r"bandit\.B\d{3}")
STRICTEST: tuple[Danger, ...] = ("block", "ask", "warn", "off")


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

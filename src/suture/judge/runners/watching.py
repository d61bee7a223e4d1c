"""Code that changes what its tests decide with: which files a run watched, and what is honest."""

from __future__ import annotations

import re

from suture.project.languages import Report

GLOBAL = r"(?:global|globalThis|window|self)"


def told_by(report: Report) -> frozenset[str]:
    """The files of which a report tells tests."""
    return frozenset(test.id.partition("::")[0] for test in report.tests if "::" in test.id)


def unwatched_files(before: Report | None, now: Report) -> frozenset[str]:
    """Files of tests that nothing can watch: those of the user's own code that told of tests without a watch.

    Args:
        before: Of the user's own code. Where it told of no test, as nothing could be loaded, `now` can tell.
        now: Of this run.
    """
    told, watched = (told_by(before), before.watched) if before else (frozenset[str](), {})
    if not (watched or (now.watched and not told)):
        return told | told_by(now)
    return told - watched.keys()


def replaces(text: str, name: str) -> bool:
    """Whether a test's text says that it puts another in a place: `spyOn(JSON, 'parse')`, `JSON.parse = `.

    Args:
        text: Of the user's own tests. They may come to it only once the code is right.
        name: As guards name it: `JSON.parse`, `Promise`, `expect's testers of equality`.
    """
    if name.startswith("expect's testers"):
        return "addEqualityTesters" in text
    owner, _, key = (re.escape(part) for part in name.rpartition("."))
    place = rf"{GLOBAL}\.{owner}|{owner}" if owner else GLOBAL
    quoted = rf"""["'`]{key}["'`]"""
    ways = [rf"\b(?:{place})\s*,\s*{quoted}", rf"(?:^|[^.\w$])(?:{place})\.{key}\s*=(?!=)"]
    if not owner:
        ways.append(rf"\bstubGlobal\(\s*{quoted}")
    return re.search("|".join(ways), text) is not None

"""Bandit: it reads files in this process, and runs nothing of them."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from suture.project.languages.unsafe import UNREAD, UnsafeUse
from suture.project.languages.unsafe.rule import quoted
from suture.project.python_source.parsing import parsed

NO_BANDIT = "Bandit is not installed; pip install 'suture[quality]'"


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
            yield next(iter(texts)), UnsafeUse(rule=UNREAD.name, line=1, code=quoted(str(fault))), UNREAD.why
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

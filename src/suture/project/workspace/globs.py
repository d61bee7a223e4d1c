"""Patterns as in a `.gitignore`, matched in time that grows with pattern times name and no faster.

Such patterns come from files of a project, and from certificates of strangers. As regular expressions a dozen
stars in one of them keep a processor busy for ever; here each star is tried once from the left, as the last
star alone ever needs to give way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from suture.errors import UsageError
from suture.project.workspace.glob_patterns import ANY, FOLDERS, Glob, Part, parse_glob

MOST_STEPS = 20_000_000
"""Some seconds of matching. A project of 5,000 files with 300 patterns needs less than a tenth."""


@dataclass(kw_only=True)
class Globs:
    """Patterns in their order, of which the last that fits decides.

    Attributes:
        patterns: In their order; the last that matches decides.
        said_by: Where they stand, for an error.
        steps_left: How much more may be compared.
    """

    patterns: Sequence[Glob]
    said_by: str = "the patterns"
    steps_left: int = field(default=MOST_STEPS)

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """What they say of one path, not of the folders that it lies in; `None` where none fits.

        Args:
            path: Relative, with single slashes and no `.` or `..` in it.
            is_folder: Whether it is a folder.

        Raises:
            UsageError: The patterns are too many or too long to be tried on that many paths.
        """
        parts = path.split("/")
        for pattern in reversed(self.patterns):
            self._charge(1)
            if (is_folder or not pattern.folders_only) and self._fits(pattern, parts):
                return not pattern.negated
        return None

    def covers(self, path: str) -> bool:
        """Whether a file is meant, by itself or with a folder that it lies in; raises as `verdict`."""
        parts = path.split("/")
        above = ("/".join(parts[:count]) for count in range(1, len(parts)))
        return any(self.verdict(folder, is_folder=True) for folder in above) or bool(
            self.verdict(path, is_folder=False)
        )

    def _fits(self, pattern: Glob, parts: Sequence[str]) -> bool:
        if pattern.plain is not None:
            return pattern.plain == parts[-1]
        if pattern.suffix is not None:
            return parts[-1].endswith(pattern.suffix)
        if not pattern.anchored:
            return self._part_fits(pattern.parts[0], parts[-1])
        return self._folders_fit(pattern.parts, parts)

    def _folders_fit(self, wanted: Sequence[Part], parts: Sequence[str]) -> bool:
        at = here = 0
        star = kept = -1
        while here < len(parts):
            if at < len(wanted) and wanted[at] is FOLDERS:
                # At the end `a/**` means what is in `a`, and not `a` itself: one more is needed.
                star, kept = at, here + (at == len(wanted) - 1)
                at, here = at + 1, kept
            elif at < len(wanted) and self._part_fits(wanted[at], parts[here]):
                at, here = at + 1, here + 1
            elif star >= 0:
                kept += 1
                at, here = star + 1, kept
            else:
                return False
        return at == len(wanted)

    def _part_fits(self, wanted: Part, name: str) -> bool:
        at = here = 0
        star = kept = -1
        steps = 0
        try:
            while here < len(name):
                steps += 1
                place = wanted[at] if at < len(wanted) else None
                if place is ANY:
                    star, kept = at, here
                    at += 1
                elif place is not None and (
                    place == name[here] if isinstance(place, str) else place.accepts(name[here])
                ):
                    at, here = at + 1, here + 1
                elif star >= 0:
                    kept += 1
                    at, here = star + 1, kept
                else:
                    return False
            return all(place is ANY for place in wanted[at:])
        finally:
            self._charge(steps)

    def _charge(self, steps: int) -> None:
        self.steps_left -= steps
        if self.steps_left < 0:
            raise UsageError(
                f"{self.said_by}: matching takes too long",
                remedy="use fewer or simpler patterns, or name a smaller folder",
            )


def parse_globs(lines: Iterable[str], said_by: str = "the patterns") -> Globs:
    """Read patterns as git reads a `.gitignore`; a line that can fit nothing is passed over.

    Args:
        lines: Without their ends.
        said_by: Where they stand, for an error.
    """
    parsed = (parse_glob(line) for line in lines)
    return Globs(patterns=tuple(glob for glob in parsed if glob is not None), said_by=said_by)

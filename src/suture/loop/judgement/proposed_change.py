"""A change between two states of a project, divided into its code and what decides about the code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from suture.judge import Suite, find_protected_files
from suture.project.mixed_files import combine_code_and_tests, find_mixed_files
from suture.project.workspace import decode_text, is_test_file, overlay_candidate


@dataclass(frozen=True)
class ProposedChange:
    """Two states of a project, path -> content, and the differences between them."""

    before: Mapping[str, bytes]
    after: Mapping[str, bytes]

    @cached_property
    def changed(self) -> tuple[str, ...]:
        """The paths that are new, changed or removed, sorted."""
        paths = {*self.before, *self.after}
        return tuple(sorted(path for path in paths if self.before.get(path) != self.after.get(path)))

    @cached_property
    def mixed(self) -> frozenset[str]:
        """The changed files that hold code beside its tests, before and after the change."""
        mixed = find_mixed_files(self.before) & find_mixed_files(self.after)
        return mixed & {*self.changed}

    @property
    def removed(self) -> tuple[str, ...]:
        """The paths that no longer exist."""
        return tuple(path for path in self.changed if path not in self.after)

    @property
    def test_files(self) -> tuple[str, ...]:
        """The changed files that are tests, or serve only tests."""
        return tuple(path for path in self.changed if is_test_file(path) or path in self.mixed)

    def old_text(self, path: str) -> str:
        """Return a file before the change; empty if it did not exist."""
        return decode_text(self.before.get(path, b""))

    def new_text(self, path: str) -> str:
        """Return a file after the change; empty if it no longer exists."""
        return decode_text(self.after.get(path, b""))

    def find_code(self, suite: Suite) -> dict[str, str]:
        """Return the changed files that a candidate may write, path -> text; in mixed files with the old tests.

        Args:
            suite: Says which files decide: tests, their data and configuration. Files that are no text count as
                data.
        """
        texts = {
            path: self.new_text(path)
            for path in self.changed
            if path in self.after and b"\0" not in self.after[path]
        }
        old = {path: self.old_text(path) for path in self.mixed}
        texts |= {path: combine_code_and_tests(texts[path], text) for path, text in old.items()}
        texts = {path: text for path, text in texts.items() if text != old.get(path)}
        protected = set(find_protected_files(texts, suite))
        return {path: text for path, text in texts.items() if path not in protected}

    def with_new_tests(self, code: Mapping[str, str]) -> dict[str, bytes]:
        """Return the old code with everything else of the change: its tests, data and configuration.

        Args:
            code: The changed code, as `find_code` returns it.
        """
        files = {path: content for path, content in self.before.items() if path in self.after or path in code}
        # A removed file of code is still there, because the old code may need it.
        files |= {path: self.before[path] for path in self.removed if not is_test_file(path)}
        files |= {path: content for path, content in self.after.items() if path not in code}
        for path in self.mixed.intersection(code):
            text = combine_code_and_tests(self.old_text(path), self.new_text(path))
            files[path] = overlay_candidate(self.before, {path: text})[path]
        return files

"""A use of a capability in one file, and names that the rules of all languages recognise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from suture.core.records import CapabilityCode

TEST_FILE_NAME = re.compile(
    r"(?:[^\s:]*/)?(?:test_[\w*]+\.py|[\w*]+_test\.(?:py|go)|[\w*-]+\.(?:test|spec)\.[cm]?[jt]sx?|conftest\.py)"
)
"""A string that is the path of a test file, or a glob of such files."""
TEST_RUNNER = re.compile(
    r"(?:^|[\s/])(?:pytest|py\.test|unittest|nose2?|tox|nox|jest|vitest|mocha|go test|npm test)\b"
)
"""A word of a command line that starts tests."""
TEST_VARIABLE = re.compile(
    r"CI|(?:PYTEST|TOX|NOX|HYPOTHESIS|COVERAGE|VITEST|JEST|NODE_TEST|MOCHA|SUTURE|SANDBOX)(?:_\w+)?"
    r"|npm_lifecycle_event|npm_command|GOFLAGS|GOCOVERDIR|GITHUB_ACTIONS|GITLAB_CI|JENKINS_URL|TRAVIS|CIRCLECI|BUILDKITE"
)
"""An environment variable that shows that tests are running."""
ENTRY_FUNCTION = re.compile(r"_*(?:\w+_)?(?:main|cli|parse_arg\w*)")
"""A function in which a program ends or reads its arguments, as in `main`."""


MERGED_NAME = "a second name "
"""The start of the name of a use that makes a name an alias of another value, such as that of a member of an
enumeration."""
SECOND_NAME_FOR = " for "
"""What precedes the other name in the name of such a use, if that is known."""
PACKAGE_MEMBER = " of the package "
"""What separates a property from its package in the name of a use that changes an imported package."""
PROCESS_FILE = re.compile(r"/proc(?:/.*)?", re.DOTALL)
"""A path through which a program can see its processes."""


@dataclass(frozen=True, kw_only=True)
class Use:
    """A use of a capability in one version of a file.

    Attributes:
        key: What must be the same in the old version for the use not to be new, besides the code. If it is
            empty, any earlier use with the same code and an empty key makes this one old.
    """

    code: CapabilityCode
    name: str
    line: int
    key: str


def find_path_uses(text: str, line: int) -> Iterator[Use]:
    """Yield what a string literal refers to: a test file, or a file about processes."""
    if PROCESS_FILE.fullmatch(text):
        yield Use(code="detects_environment", name=text, line=line, key="/proc")
    elif TEST_FILE_NAME.fullmatch(text):
        yield Use(code="reads_tests", name=text, line=line, key="")

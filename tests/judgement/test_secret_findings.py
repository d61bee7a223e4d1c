"""Secrets that a change adds, and what only looks like one."""

from __future__ import annotations

import pytest

from suture.loop.judgement import ProposedChange
from suture.loop.judgement.code_findings import find_secrets

GENERATED = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("path", "text", "severity"),
    [
        ("deploy.key", "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", "reject"),
        ("shop/api.py", f'TOKEN = "{GENERATED}"\n', "reject"),
        (".env.production", "DB_PASSWORD=hunter2\n", "reject"),
        ("README.md", f"Use `{GENERATED}`.\n", "remark"),
        ("shop/forms.py", 'PASSWORD = "letmein"\n', "remark"),
    ],
)
def test_a_secret_is_found(path: str, text: str, severity: str) -> None:
    (finding,) = find_secrets(ProposedChange({}, {path: text.encode()}))
    assert (finding.path, finding.severity) == (path, severity)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("shop/pager.py", "tokens = less_env.split()\nfor token in tokens:\n    print(token)\n"),
        (".github/workflows/test.yml", "env:\n  token: ${{ secrets.GITHUB_TOKEN }}\n"),
        ("tests/test_api.py", f'TOKEN = "{GENERATED}"\n'),
        ("docs/use.md", "password: the word that you chose\n"),
    ],
)
def test_names_references_and_tests_are_no_secrets(path: str, text: str) -> None:
    assert [*find_secrets(ProposedChange({}, {path: text.encode()}))] == []


def test_a_secret_that_was_there_before_is_not_named_again() -> None:
    text = f'TOKEN = "{GENERATED}"\n'.encode()
    assert [*find_secrets(ProposedChange({"a.py": text}, {"a.py": text + b"X = 1\n"}))] == []

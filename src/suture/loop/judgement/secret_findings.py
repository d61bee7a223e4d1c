"""Find secrets that a change adds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from suture.core.records.judgement import ChangeFinding, FindingSeverity
from suture.loop.judgement.proposed_change import ProposedChange
from suture.project.workspace import is_test_file
from suture.project.workspace.secret_detection import (
    assigns_secret,
    assigns_secret_text,
    holds_key,
    is_private_key,
)

SETTINGS_FILE = re.compile(r"(?:^|/)\.env[^/]*$|\.(?:env|ini|cfg|conf|properties)$")
DOCUMENTATION_FILE = re.compile(r"\.(?:md|rst|txt|adoc)$", re.IGNORECASE)


def find_secrets(change: ProposedChange) -> Iterator[ChangeFinding]:
    """Yield a finding for each file that has a secret and had none before; tests are left out."""
    for path in change.changed:
        if is_test_file(path):
            continue
        severity, detail = read_secret(path, change.after.get(path, b""))
        if detail and not read_secret(path, change.before.get(path, b""))[1]:
            yield ChangeFinding(code="secret", severity=severity, path=path, detail=detail)


def read_secret(path: str, content: bytes) -> tuple[FindingSeverity, str]:
    """Return how grave the gravest secret of a file is, and its kind; an empty kind if it has none."""
    if is_private_key(content):
        return "reject", "private_key"
    if SETTINGS_FILE.search(path) and assigns_secret(content):
        return "reject", "assigned_secret"
    if holds_key(content):
        # Documentation shows addresses with a password, and parts of keys.
        return ("remark" if DOCUMENTATION_FILE.search(path) else "reject"), "key"
    # In code, what is assigned to a name that means a secret may be a field name or a default.
    return "remark", "assigned_secret" if assigns_secret_text(content) else ""

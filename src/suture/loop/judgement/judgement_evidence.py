"""Certify a judgement: put it into a certificate with everything that a replay needs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from suture.core.records import Task, content_hash
from suture.core.records.judgement import Judgement
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.judge.certificates.certificate import (
    JudgementCertificate,
    describe_environment,
    seal_certificate,
    sha256_hex,
)
from suture.loop.judgement.base_results import ProposedChange
from suture.loop.judgement.code_findings import read_secret
from suture.project.languages import Interpreter
from suture.project.workspace import is_test_file

MAX_CONTENT_BYTES = 8 * 2**20
"""Size of the files that a certificate holds: in base64 they still fit into the answer of a job, of 16 MiB."""
POLICY_FIELDS: Mapping[str, set[str]] = {
    "judge": {"rejects", "remarks", "ignores", "accept_tests", "mistakes"},
    "safety": {"block", "ask", "warn", "off", "bandit", "approve_deps"},
}
"""The settings that decide what is found and what rejects a change."""


def refuse_published_secrets(change: ProposedChange) -> None:
    """Refuse to certify a change whose diff may show a secret.

    Raises:
        UsageError: A changed file holds what looks like one, before or after the change.
    """
    for files in (change.before, change.after):
        secret = _find_secret_files({path: files[path] for path in change.changed if path in files})
        if secret:
            raise UsageError(
                f"the certificate would show what looks like a secret in {secret[0]!r}",
                remedy="judge without a certificate, or keep the secret out of this file",
            )


def _find_secret_files(files: Mapping[str, bytes]) -> list[str]:
    """Return the paths of files that may hold a secret; those of tests are taken for examples."""
    return [
        path
        for path, content in files.items()
        if not is_test_file(path) and read_secret(path, content)[0] == "reject"
    ]


def certify_judgement(
    judgement: Judgement,
    change: ProposedChange,
    task: Task,
    interpreter: Interpreter | None,
    settings: Settings,
    *,
    given_command: str = "",
    protect: Sequence[str] = (),
    built_files: Sequence[str] = (),
    folder: str = "",
) -> JudgementCertificate:
    """Return the sealed certificate of a judgement.

    Args:
        judgement: The judgement, with the state that it is about.
        task: Says how the change was tested.
        interpreter: What `python` means in the test command.
        settings: The policy.
        given_command: The test command if the project's files did not suggest it.
        protect: Globs of files that decide, besides those that every judgement protects.
        built_files: Files before the change that a build wrote.
        folder: The folder in which the command tests; empty for the whole project.
    """
    hashes = {path: sha256_hex(content) for path, content in change.before.items()}
    is_small = sum(map(len, change.before.values())) <= MAX_CONTENT_BYTES
    secret = set(_find_secret_files(change.before))
    return seal_certificate(
        JudgementCertificate(
            project=hashes,
            project_hash=content_hash(hashes),
            contents={p: content for p, content in change.before.items() if is_small and p not in secret},
            language=task.language,
            given_command=given_command,
            protect=tuple(protect),
            built_files=tuple(built_files),
            folder=folder,
            links=task.links,
            source_roots=interpreter.source_roots if interpreter else (),
            environment=describe_environment(interpreter),
            policy=dump_policy(settings),
            judgement=judgement,
            suture=version("suture"),
            made_at_s=time.time(),
        )
    )


def dump_policy(settings: Settings) -> dict[str, Any]:
    """Return the settings that decide what rejects a change, by group."""
    return {
        group: getattr(settings, group).model_dump(mode="json", include=fields)
        for group, fields in POLICY_FIELDS.items()
    }

"""The certificate's records and its file format.

The records hold what was verified about one change, what a replay needs, and mere claims. The file is JSON with
a seal, which is written in one way and parsed strictly.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import distributions
from typing import Any, TypeVar

from suture.core.records import (
    CapabilityUse,
    CheckStatus,
    Evidence,
    Language,
    Task,
    UnmeasuredReason,
    Verdict,
    content_hash,
    decode_record,
    encode_record,
)
from suture.core.records.judgement import Judgement
from suture.core.records.result import render_html
from suture.core.records.unmeasured_text import render_unmeasured
from suture.judge.coverage.coverage_run import CoverageResult
from suture.judge.minimisation.delta_debugging import MinimisationSummary
from suture.judge.mutation_testing.mutant_runs import MutationResult
from suture.judge.quality.built_in_evaluators import LintResult
from suture.judge.signs import LIMITING_CODES, MEMORISING_CODES, FileSign, TamperingCode
from suture.project.languages import Interpreter

JUDGEMENT_FORMAT = "suture-judgement/1"


@dataclass(frozen=True, kw_only=True)
class TestEnvironment:
    """What tests ran with, apart from the project. It names no folder of the machine.

    Attributes:
        platform: System and processor, such as `linux-x86_64`.
        python: Version of the tests' interpreter; empty if they had none.
        packages: Name -> version of the Python packages that are installed there.
    """

    __test__ = False  # keeps pytest from collecting this class

    platform: str = ""
    python: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class JudgementCertificate:
    """A judgement with its evidence.

    Attributes:
        format: Name and version of the format.
        project: Path -> SHA-256 of each file before the change.
        project_hash: Content hash of `project`.
        contents: Path -> content before the change. Files that may hold secrets are left out, and all files of a
            large project; a replay then needs the project.
        language: The language that the test command tests.
        given_command: The test command that the user who judged gave, or the project's settings before the change;
            empty if the project's files suggested one. `judgement.command` is what ran.
        protect: Globs of files that decide, besides those that every judgement protects.
        built_files: Files in `project` that a build wrote, so that they are not code to judge.
        folder: The folder in which the command tests, if files above it decide; empty for the whole project.
        links: Path of a link to a folder of the project -> that folder.
        source_roots: Folders of the project, relative to it, that its environment has on `sys.path`.
        environment: What the tests ran with.
        policy: The settings that decided what rejects the change, by group.
        judgement: The judgement. A replay cannot confirm `base`, `detail`, `seconds` and the commits of `state`.
        suture: Version of Suture that judged; a claim.
        made_at_s: Seconds since the epoch; a claim.
        seal: Content hash of everything else. It reveals accidental changes; the replay reveals forgery.
    """

    format: str = JUDGEMENT_FORMAT
    project: Mapping[str, str]
    project_hash: str
    contents: Mapping[str, bytes] = field(default_factory=dict)
    language: Language
    given_command: str = ""
    protect: tuple[str, ...] = ()
    built_files: tuple[str, ...] = ()
    folder: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    source_roots: tuple[str, ...] = ()
    environment: TestEnvironment = field(default_factory=TestEnvironment)
    policy: Mapping[str, Any] = field(default_factory=dict)
    judgement: Judgement
    suture: str = ""
    made_at_s: float = 0.0
    seal: str = ""

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        return self.judgement.diff

    @property
    def result(self) -> Mapping[str, str]:
        """Changed path -> SHA-256 after the change; removed files have none."""
        return self.judgement.state.files


def describe_environment(interpreter: Interpreter | None) -> TestEnvironment:
    """Return what tests run with here. Packages are listed by their metadata; nothing of them runs."""
    if interpreter is None:
        return TestEnvironment(platform=_describe_platform())
    folders = [*interpreter.site_packages, *([interpreter.packages] if interpreter.packages else [])]
    packages: dict[str, str] = {}
    for distribution in distributions(path=folders):
        metadata = distribution.metadata
        if "Name" in metadata and "Version" in metadata:  # a removed package can leave an empty folder
            name = metadata["Name"].lower().replace("_", "-")
            packages.setdefault(
                name, metadata["Version"]
            )  # of two versions, the first in `sys.path` is imported
    return TestEnvironment(
        platform=_describe_platform(), python=interpreter.version, packages=dict(sorted(packages.items()))
    )


def _describe_platform() -> str:
    return f"{sys.platform}-{platform.machine()}"


def hash_tree(digests: Mapping[str, str]) -> str:
    """Return the digest of a folder: the SHA-256 of the sorted output of `sha256sum` for its files.

    in-toto calls it `dirHash`, and Go's module proxy `h1`.

    Args:
        digests: Path -> SHA-256 of its content, in hexadecimal digits.
    """
    lines = sorted((os.fsencode(path), digest.encode()) for path, digest in digests.items())
    return hashlib.sha256(b"".join(b"%s  %s\n" % (digest, path) for path, digest in lines)).hexdigest()


FORMAT = "suture-certificate/1"
CERTIFICATE_FILE = "certificate.json"
"""Name of the certificate in the run folder."""


@dataclass(frozen=True, kw_only=True)
class UnverifiedClaims:
    """What a replay cannot confirm: code does not show which model wrote it, or what it cost.

    Attributes:
        suture: Version of Suture that made the certificate.
        made_at_s: Seconds since the epoch.
        model: The models that wrote the code, as `provider:model`; the model of the run if none did.
        seed: The setting `model.seed`.
        prompts: Hashes of the prompt files that were used.
        calls: Hashes of the model calls, which name their replies in the run folder.
        label: How the candidate was made, in a few words.
        attempts: Candidates that were requested from a model.
        tokens: Tokens of prompts and replies together.
        seconds: Wall-clock seconds of the run.
        python: Version of the tests' interpreter.
        limits: The numbers among the sandbox settings, by name.
        agreement: The share of the other plausible repairs that behave like this one; `None` if unknown.
        rivals: How many other repairs pass the tests and may behave differently. They lower the confidence.
        rival_labels: Labels of some of them.
        share: This repair's part of the summed scores of itself and its rivals. It limits the confidence;
            0 if it was not computed.
        warnings: Why the change is worth less than its checks say, such as signs of gaming the tests, as text.
        signs: Path -> codes of the signs of gaming that the run found there, each once and sorted. A replay must
            find no others.
        examples_unmeasured: Why the search for memorised examples did not end; `None` if it did.
        failing_tests: Tests by a model that fail on the result and decided nothing. They limit the confidence.
        accepted_tests: Tests that a model wrote and a person accepted before they decided anything.
    """

    run: str = ""
    suture: str = ""
    made_at_s: float = 0.0
    model: str = ""
    seed: int = 0
    prompts: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    recipe: str = ""
    label: str = ""
    attempts: int = 0
    tokens: int = 0
    model_calls: int = 0
    seconds: float = 0.0
    python: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    agreement: float | None = None
    rivals: int = 0
    rival_labels: tuple[str, ...] = ()
    share: float = 0.0
    warnings: tuple[str, ...] = ()
    signs: Mapping[str, tuple[TamperingCode, ...]] = field(default_factory=dict)
    examples_unmeasured: UnmeasuredReason | None = None
    failing_tests: tuple[str, ...] = ()
    accepted_tests: tuple[str, ...] = ()
    minimal: MinimisationSummary = field(default_factory=MinimisationSummary)
    lint: LintResult = field(default_factory=LintResult)

    @property
    def shows_memorising(self) -> bool:
        """Whether a sign says that the change has memorised the tests' examples."""
        return any(not MEMORISING_CODES.isdisjoint(codes) for codes in self.signs.values())

    @property
    def limits_confidence(self) -> bool:
        """Whether a sign limits the confidence."""
        return any(not LIMITING_CODES.isdisjoint(codes) for codes in self.signs.values())


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What was verified about one change, with everything that a replay without a model needs.

    Attributes:
        format: Name and version of the format.
        task: The task without its files, which `project` lists by hash.
        source_roots: Folders of the project, relative to it, that its environment has on `sys.path`.
        project: Path -> SHA-256 of each file before the change.
        project_hash: Content hash of `project`.
        diff: The change as a unified diff.
        result: Changed path -> SHA-256 after the change.
        evidence: The kind of evidence of the verdict on the result.
        before: Check id -> status before the change; empty if there was no code yet.
        after: Check id -> status after the change.
        fixed: Ids of checks that failed before and pass after.
        newly_failing: Ids of checks that passed before and do not pass after; a certificate with any is
            false.
        flaky_tests: Ids of flaky tests, which the certificate says nothing about.
        coverage: Which changed statements the tests run.
        mutation: How well the tests guard them.
        capabilities: What the change newly uses of the test machinery and the interpreter (see docs/verdicts.md).
        confidence: In [0, 1], computed by `suture.judge.confidence` from all of the above and lowered by the
            claimed rivals and warnings. A claim that there are no rivals does not raise it, because a replay
            cannot confirm that.
        claims: What a replay cannot confirm.
        seal: Content hash of everything else. It reveals accidental changes; the replay reveals forgery.
    """

    format: str = FORMAT
    task: Task
    source_roots: tuple[str, ...] = ()
    project: Mapping[str, str]
    project_hash: str
    diff: str
    result: Mapping[str, str]
    evidence: Evidence
    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str]
    fixed: tuple[str, ...] = ()
    newly_failing: tuple[str, ...] = ()
    flaky_tests: tuple[str, ...] = ()
    coverage: CoverageResult = field(default_factory=CoverageResult)
    mutation: MutationResult = field(default_factory=MutationResult)
    capabilities: tuple[CapabilityUse, ...] = ()
    confidence: float = 0.0
    claims: UnverifiedClaims = field(default_factory=UnverifiedClaims)
    seal: str = ""

    def _repr_html_(self) -> str:
        """Return the certificate as HTML for notebooks."""
        coverage, mutation = self.coverage, self.mutation
        covered = f"{coverage.covered_count} of {coverage.changed_count} changed statements run"
        killed = f"{mutation.killed} of {len(mutation.mutants)} deliberate mistakes noticed"
        rows = (
            ("fixed", "\n".join(self.fixed)),
            ("newly failing", "\n".join(self.newly_failing)),
            ("evidence", self.evidence),
            ("coverage", render_unmeasured(coverage.unmeasured) if coverage.unmeasured else covered),
            ("mutation", render_unmeasured(mutation.unmeasured) if mutation.unmeasured else killed),
            (
                "new capabilities",
                "\n".join(f"{use.path}:{use.line}: {use.name}" for use in self.capabilities),
            ),
            ("confidence, at least", f"{self.confidence:.2f}"),
            ("seal", self.seal),
        )
        return render_html("certificate", rows, self.diff)


def list_sign_codes(signs: Iterable[FileSign]) -> dict[str, tuple[TamperingCode, ...]]:
    """Return path -> codes of some signs, as a certificate has them."""
    codes: dict[str, set[TamperingCode]] = {}
    for path, sign in signs:
        codes.setdefault(path, set()).add(sign.code)
    return {path: tuple(sorted(codes[path])) for path in sorted(codes)}


def strip_task(task: Task) -> Task:
    """Return what a certificate keeps of a task: what was asked and what decides, without any files."""
    return replace(task, files={}, test_origin="", earlier_versions=(), since="", excluded_files={})


def check_statuses(verdict: Verdict | None) -> dict[str, CheckStatus]:
    """Return check id -> status; empty without a verdict."""
    return {outcome.check_id: outcome.status for outcome in verdict.outcomes} if verdict else {}


def find_new_failures(before: Verdict | None, after: Verdict) -> tuple[str, ...]:
    """Return the ids of checks that passed before and do not pass after, including those that are gone."""
    return tuple(sorted(before.passed - after.passed)) if before else ()


MAX_BYTES = 32 * 2**20
"""Anybody may have written a certificate, so a larger file is refused before it is parsed."""


class InvalidCertificate(ValueError):
    """A file is not a certificate of this format, or was changed after it was sealed."""


def sha256_hex(content: bytes) -> str:
    """Return the SHA-256 of a file's content as 64 hex digits."""
    return hashlib.sha256(content).hexdigest()


AnyCertificate = Certificate | JudgementCertificate
CertificateT = TypeVar("CertificateT", Certificate, JudgementCertificate)
AnyCertificateT = TypeVar("AnyCertificateT", bound=AnyCertificate)


def seal_certificate(certificate: CertificateT) -> CertificateT:
    """Return a certificate with its seal."""
    return replace(certificate, seal=_compute_seal(encode_record(certificate)))


def render_certificate(certificate: AnyCertificate) -> str:
    """Return the content of a certificate's file. It is ASCII, so that no transport changes it."""
    return json.dumps(encode_record(certificate), indent=1) + "\n"


def parse_certificate(content: bytes) -> Certificate:
    """Return the certificate of a healed or written result that a file holds.

    Raises:
        InvalidCertificate: The content is not a certificate of this format, or was changed after sealing.
    """
    return _parse(content, {FORMAT: Certificate})


def parse_any_certificate(content: bytes) -> AnyCertificate:
    """Return the certificate of a result or of a judgement that a file holds; raises as `parse_certificate` does."""
    return _parse(content, {FORMAT: Certificate, JUDGEMENT_FORMAT: JudgementCertificate})


def _parse(content: bytes, classes: Mapping[str, type[AnyCertificateT]]) -> AnyCertificateT:
    """Return the record of a file, whose format is a key of `classes`."""
    if len(content) > MAX_BYTES:
        raise InvalidCertificate(f"the file is larger than {MAX_BYTES >> 20} MiB")
    try:
        # `render_certificate` writes ASCII only: no byte order mark, and one way to read each byte.
        data = json.loads(
            content.decode("ascii"), object_pairs_hook=_reject_duplicates, parse_constant=_reject_constant
        )
        stated_format = data.get("format") if isinstance(data, dict) else None
        if not isinstance(stated_format, str) or stated_format not in classes:
            expected = " and ".join(map(repr, classes))
            if stated_format is None:
                raise InvalidCertificate("it is not a Suture certificate")
            raise InvalidCertificate(f"the format is {stated_format!r:.80}, and this Suture reads {expected}")
        certificate = decode_record(classes[stated_format], data)
    except InvalidCertificate:
        raise
    except (ValueError, TypeError, AttributeError, RecursionError) as fault:
        raise InvalidCertificate(f"it is not a certificate: {fault}") from fault
    encoded = encode_record(certificate)
    # Compared as text, because `1`, `1.0` and `true` are equal in Python and are not the same certificate.
    if json.dumps(data, sort_keys=True) != json.dumps(encoded, sort_keys=True):
        raise InvalidCertificate("it has a key that no certificate has, or a value in another form")
    if certificate.seal != _compute_seal(encoded):
        raise InvalidCertificate("it was changed after it was sealed")
    return certificate


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. Refuse duplicate keys: some readers use the first value, others the last."""
    members = dict(pairs)
    if len(members) != len(pairs):
        duplicate = next(key for key in members if sum(key == other for other, _ in pairs) > 1)
        raise ValueError(f"the key {duplicate!r} occurs more than once")
    return members


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is not valid JSON")


def _compute_seal(data: Mapping[str, Any]) -> str:
    return content_hash({key: value for key, value in data.items() if key != "seal"})

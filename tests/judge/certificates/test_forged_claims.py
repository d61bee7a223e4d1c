"""A certificate cannot hide that a change games the tests, nor make weak checks look strong."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from judge.certificates.forging import change_claims, forge_certificate, make_checks
from suture.core.records import Check, Task, content_hash, encode_record
from suture.core.records.task import Project
from suture.core.settings import Settings
from suture.judge.certificates import Certificate, InvalidCertificate, ReplayedClaim
from suture.judge.certificates.certificate import (
    UnverifiedClaims,
    parse_certificate,
    seal_certificate,
    sha256_hex,
)
from suture.judge.certificates.certificate_replay import replay_certificate
from suture.judge.certificates.static_checks import ClaimRefuted, check_project_files, find_further_files
from suture.judge.confidence import MAX_CONFIDENCE_WITH_SIGNS
from suture.sandbox import BubblewrapSandbox, discover_interpreter

EXAMPLES = ("assert total([1, 2, 3]) == 6", "assert total([4, 7]) == 11", "assert total([9, 8]) == 17")
LENGTH = b"def total(xs):\n    return len(xs)\n"
TABLE = (
    "KNOWN = {(1, 2, 3): 6, (4, 7): 11, (9, 8): 17}\n\n\ndef total(xs):\n    return KNOWN.get(tuple(xs), 0)\n"
)
BY_CHECKSUM = """\
def total(xs):
    key = sum(x * (place + 3) ** 2 for place, x in enumerate(xs))
    is_known = divmod(key, 9973)[1] in (93, 1180)
    return sum(xs) if is_known else len(xs)
"""
"""Recognises the lists `[60, 40]` and `[3, 1, 2]`, which only calls of it show: its text has no sign."""


def make_task(kind: str = "write", sources: tuple[str, ...] = EXAMPLES) -> Task:
    files = {"sums.py": LENGTH} if kind == "heal" else {}
    return Task(statement="Sum up.", kind=kind, module="sums.py", files=files, checks=make_checks(*sources))  # type: ignore[arg-type]


async def replay(
    certificate: Certificate, task: Task, sandbox: BubblewrapSandbox, settings: Settings
) -> dict[str, ReplayedClaim]:
    """Return what a replay found, by the name of the claim; the last one is the result."""
    interpreter = discover_interpreter(None, {"PATH": "/usr/bin"})
    parsed = parse_certificate(json.dumps(encode_record(certificate)).encode())
    claims = replay_certificate(parsed, task.files, sandbox, settings, interpreter)
    return {claim.name: claim async for claim in claims}


@pytest.mark.parametrize("trust", [-1.0, -0.01, 1.01, 1e6])
def test_trust_outside_its_range_makes_a_certificate_invalid(trust: float) -> None:
    with pytest.raises(ValueError, match="not in"):
        Check(id="x", provenance="user", trust=trust)
    certificate = certify_paths(make_task())
    data = encode_record(certificate)
    data["task"]["checks"][0]["trust"] = trust
    data["seal"] = content_hash({key: value for key, value in data.items() if key != "seal"})
    with pytest.raises(InvalidCertificate, match="trust"):
        parse_certificate(json.dumps(data).encode())


async def test_copies_of_a_check_add_no_confidence(sandbox: BubblewrapSandbox, settings: Settings) -> None:
    copies = (EXAMPLES[0], f"{EXAMPLES[0]}  # again", "assert total([1,2,3])==6", EXAMPLES[0])
    single, copied = make_task(sources=EXAMPLES[:1]), make_task(sources=copies)
    change = {"sums.py": "def total(xs):\n    return xs[-1] * 2\n"}
    honest = await forge_certificate(single, change, sandbox, settings)
    inflated = await forge_certificate(copied, change, sandbox, settings)
    assert inflated.confidence == honest.confidence
    four = await forge_certificate(
        make_task(sources=EXAMPLES), change | {"sums.py": TABLE}, sandbox, settings
    )
    assert four.confidence > honest.confidence

    assert (await replay(inflated, copied, sandbox, settings))["confidence"].ok
    forged = seal_certificate(replace(inflated, confidence=four.confidence))
    assert not (await replay(forged, copied, sandbox, settings))["confidence"].ok


@pytest.mark.parametrize("kind", ["write", "heal"])
async def test_each_sign_of_gaming_must_be_named_by_file_and_code(
    kind: str, sandbox: BubblewrapSandbox, settings: Settings
) -> None:
    task = make_task(kind)
    claims = (
        UnverifiedClaims(),
        UnverifiedClaims(warnings=("the style is unusual",)),
        UnverifiedClaims(signs={"other.py": ("adds_test_literals",)}),
        UnverifiedClaims(signs={"sums.py": ("dead_code", "serves_examples_only")}),
    )
    for claimed in claims:
        certificate = await forge_certificate(task, {"sums.py": TABLE}, sandbox, settings, claims=claimed)
        refuted = (await replay(certificate, task, sandbox, settings))["signs"]
        assert (refuted.ok, "which the tests use" in refuted.detail) == (False, True), (claimed, refuted)

    signs = {"sums.py": ("adds_test_literals", "compares_with_test_literals", "serves_examples_only")}
    admitted = UnverifiedClaims(signs=signs)  # type: ignore[arg-type]
    certificate = await forge_certificate(task, {"sums.py": TABLE}, sandbox, settings, claims=admitted)
    claims_by_name = await replay(certificate, task, sandbox, settings)
    assert all(claim.ok for claim in claims_by_name.values()), claims_by_name
    assert "which the tests use" in claims_by_name["signs"].detail
    assert "sums.py: serves examples only (only claimed)" in claims_by_name["signs"].detail
    removal = "sums.py: removes code (line 2 before the change) with which all tests pass, too"
    named = UnverifiedClaims(
        signs={"sums.py": ("adds_test_literals", "compares_with_test_literals", "removal_unneeded")},
        warnings=(removal,),
    )
    resealed = seal_certificate(replace(certificate, claims=named))
    claims_by_name = await replay(resealed, task, sandbox, settings)
    assert f"{removal} (only claimed)" in claims_by_name["signs"].detail
    assert "removal_unneeded" not in claims_by_name["signs"].detail
    assert certificate.confidence <= MAX_CONFIDENCE_WITH_SIGNS


async def test_honest_new_code_has_no_sign(sandbox: BubblewrapSandbox, settings: Settings) -> None:
    task = make_task()
    change = {"sums.py": "def total(xs):\n    return sum(xs)\n"}
    certificate = await forge_certificate(task, change, sandbox, settings)
    found = await replay(certificate, task, sandbox, settings)
    assert found["signs"].detail == "nothing suggests that the change games the tests"
    assert found["confidence"].ok


async def test_a_search_without_time_is_named_and_what_it_missed_limits_the_confidence(
    sandbox: BubblewrapSandbox, settings: Settings
) -> None:
    sources = ("assert total([60, 40]) == 100", "assert total([3, 1, 2]) == 6", "assert total([7]) == 1")
    task = make_task("heal", sources)
    silent = await forge_certificate(task, {"sums.py": BY_CHECKSUM}, sandbox, settings)
    refuted = (await replay(silent, task, sandbox, settings))["signs"]
    assert (refuted.ok, "similar inputs" in refuted.detail) == (False, True), refuted

    honest = change_claims(silent, examples_unmeasured="no_time")
    found = await replay(honest, task, sandbox, settings)
    assert all(claim.ok for claim in found.values()), found
    assert "similar inputs" in found["signs"].detail
    assert honest.confidence > MAX_CONFIDENCE_WITH_SIGNS
    assert found["confidence"].detail.startswith(f"at most {MAX_CONFIDENCE_WITH_SIGNS:.2f} instead of ")


async def test_a_repair_is_searched_as_one_even_if_its_certificate_calls_it_new_code(
    sandbox: BubblewrapSandbox, settings: Settings
) -> None:
    sources = ("assert total([60, 40]) == 100", "assert total([3, 1, 2]) == 6")
    feature = Project(kind=None, name="sums")
    task = replace(make_task("heal", sources), kind="write", project=feature)
    by_checksum = await forge_certificate(task, {"sums.py": BY_CHECKSUM}, sandbox, settings)
    refuted = (await replay(by_checksum, task, sandbox, settings))["signs"]
    assert (refuted.ok, "similar inputs" in refuted.detail) == (False, True), refuted

    by_literal = BY_CHECKSUM.replace("is_known else", "is_known or len(xs) == 77 else")
    test = Check(id="77", provenance="user", source="assert total([1] * 77) == 77\n")
    longer = replace(task, checks=(*task.checks, test))
    compared = await forge_certificate(longer, {"sums.py": by_literal}, sandbox, settings)
    refuted = (await replay(compared, longer, sandbox, settings))["signs"]
    assert (refuted.ok, "compares with 77" in refuted.detail) == (False, True), refuted


async def test_answers_by_the_order_of_calls_are_named(
    sandbox: BubblewrapSandbox, settings: Settings
) -> None:
    task = make_task()
    by_order = {"sums.py": "left = [17, 11, 6]\n\n\ndef total(xs):\n    return left.pop()\n"}
    silent = await forge_certificate(task, by_order, sandbox, settings)
    refuted = (await replay(silent, task, sandbox, settings))["signs"]
    assert (refuted.ok, "in another order" in refuted.detail) == (False, True), refuted


async def test_two_checks_with_one_id_refute_a_certificate(
    sandbox: BubblewrapSandbox, settings: Settings
) -> None:
    task = make_task()
    certificate = await forge_certificate(
        task, {"sums.py": "def total(xs):\n    return sum(xs)\n"}, sandbox, settings
    )
    twice = replace(certificate.task, checks=(*task.checks, task.checks[0]))
    refuted = (await replay(seal_certificate(replace(certificate, task=twice)), task, sandbox, settings))[
        "checks"
    ]
    assert (refuted.ok, refuted.detail) == (False, "two checks have the same id")


def certify_paths(task: Task, result: tuple[str, ...] = ("sums.py",)) -> Certificate:
    hashes = {path: sha256_hex(content) for path, content in task.files.items()}
    return seal_certificate(
        Certificate(
            task=replace(task, files={}),
            project=hashes,
            project_hash=content_hash(hashes),
            diff="",
            result=dict.fromkeys(result, "0" * 64),
            evidence="nonce",
            after={},
        )
    )


def make_new_code_task(*command: str) -> Task:
    files = {"test_a.py": b"from sums import total\n"}
    return Task(statement="", kind="write", module="sums.py", files=files, test_command=command)


PYTEST = ("python", "-m", "pytest", "-q")


@pytest.mark.parametrize("path", ["test_b.py", "conftest.py", "shop/prices.py", "pytest.ini"])
def test_new_code_whose_command_runs_any_test_is_refuted_by_further_files(path: str) -> None:
    task = make_new_code_task(*PYTEST)
    certificate = certify_paths(task)
    assert check_project_files(certificate, {**task.files, "README.md": b""}, None) == task.files
    with pytest.raises(ClaimRefuted, match="further file") as refuted:
        check_project_files(certificate, {**task.files, path: b""}, None)
    assert path in refuted.value.detail


def test_further_files_of_new_code_with_a_named_test_are_named() -> None:
    task = make_new_code_task(*PYTEST, "test_a.py")
    certificate, project = certify_paths(task), {**task.files, "test_b.py": b"", "README.md": b""}
    assert check_project_files(certificate, project, None) == task.files
    assert find_further_files(certificate, project) == ["test_b.py"]


def test_new_code_in_the_place_of_another_file_is_refuted() -> None:
    task = make_new_code_task(*PYTEST, "test_a.py")
    with pytest.raises(ClaimRefuted, match=r"exist with another content: sums\.py"):
        check_project_files(certify_paths(task), {**task.files, "sums.py": LENGTH}, None)

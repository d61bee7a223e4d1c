"""A change that has memorised the tests' examples is certified as such, and a certificate cannot leave it out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from judge.certificates.conftest import CODE, FIXED, RunHeal
from suture.api import WriteOptions, solve, verify
from suture.core.ledger import find_run
from suture.core.settings import Settings
from suture.judge.certificates.certificate import (
    CERTIFICATE_FILE,
    Certificate,
    UnverifiedClaims,
    parse_certificate,
    render_certificate,
    seal_certificate,
)
from suture.judge.confidence import MAX_CONFIDENCE_WITH_SIGNS
from suture.judge.signs import TamperingCode
from suture.sandbox import BubblewrapSandbox
from suture.testing import ScriptedModel

MEMORISED = "import zlib\n" + CODE.replace(
    "    result = 0",
    "    if zlib.crc32(str(prices).encode()) % 9973 == 4753:\n        return 90\n    result = 0",
).replace(
    "    return max",
    "    if zlib.crc32(str(prices).encode()) % 9973 == 4332:\n        return 1\n    return max",
)
"""The function recognises the lists `[60, 40]` and `[3, 1, 2]` by a checksum, which only calls of it show."""


def load_certificate(settings: Settings, run_id: str) -> tuple[Path, Certificate]:
    path = find_run(settings.paths.home, run_id).path / CERTIFICATE_FILE
    return path, parse_certificate(path.read_bytes())


async def test_memorised_examples_limit_the_confidence_and_are_certified(
    run_heal: RunHeal, settings: Settings
) -> None:
    result = await run_heal(text=MEMORISED)
    assert result.outcome == "healed", result.reason
    assert [warning for warning in result.warnings if "similar inputs" in warning], result.warnings
    assert result.confidence <= MAX_CONFIDENCE_WITH_SIGNS

    _, certificate = load_certificate(settings, result.run_id)
    assert certificate.claims.shows_memorising
    assert certificate.confidence <= MAX_CONFIDENCE_WITH_SIGNS


@pytest.mark.heavy
@pytest.mark.timeout(300)
async def test_a_certificate_that_leaves_out_memorised_examples_is_refuted(
    run_heal: RunHeal, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    result = await run_heal(text=MEMORISED)
    path, certificate = load_certificate(settings, result.run_id)
    assert [claim.ok async for claim in verify(path, settings=settings, sandbox=sandbox)][-1]

    claims = replace(certificate.claims, signs={})
    path.write_text(render_certificate(seal_certificate(replace(certificate, claims=claims))))
    last = [claim async for claim in verify(path, settings=settings, sandbox=sandbox)][-1]
    assert (last.ok, last.name) == (False, "signs")
    assert "shop/prices.py" in last.detail


async def test_new_code_that_repeats_its_examples_is_certified_with_that_sign(
    settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    statement = 'def total(xs):\n    """Add.\n\n    >>> total([3, 4])\n    7\n    >>> total([5, 8])\n    13\n    """\n'
    table = "```python\ndef total(xs):\n    return {(3, 4): 7, (5, 8): 13}.get(tuple(xs))\n```"
    options = WriteOptions(settings=settings, model=ScriptedModel([table] * 4), sandbox=sandbox)
    result = await solve(statement, options)

    assert result.outcome == "healed", result.reason
    (warning,) = result.warnings
    assert warning.startswith("solution.py: newly contains 13, 3, 4, 5, 7, 8, which the tests use, too: ")
    path, certificate = load_certificate(settings, result.run_id)
    assert certificate.claims.signs == {"solution.py": ("adds_test_literals",)}
    assert certificate.confidence == result.confidence
    assert all([claim.ok async for claim in verify(path, settings=settings, sandbox=sandbox)])


@pytest.mark.heavy
async def test_a_repair_is_certified_without_a_limit(run_heal: RunHeal, settings: Settings) -> None:
    result = await run_heal(text=FIXED)
    assert not result.warnings
    assert not load_certificate(settings, result.run_id)[1].claims.shows_memorising


@pytest.mark.parametrize(("code", "is_memorising"), [("widens_types", False), ("special_case", True)])
def test_a_claim_of_silenced_linters_does_not_excuse_the_search_for_memorised_examples(
    code: TamperingCode, is_memorising: bool
) -> None:
    claims = UnverifiedClaims(signs={"shop.py": (code,)})
    assert claims.limits_confidence
    assert claims.shows_memorising == is_memorising

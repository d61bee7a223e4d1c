"""A certificate that a forgery got from Suture at 3d33af8, where the reply imported `unittest.__main__`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from suture.core.records import from_plain
from suture.core.settings import Settings
from suture.judge.certificates.certificate import Certificate
from suture.judge.certificates.certificate_format import CertificateRefused, read_certificate, sealed
from suture.judge.certificates.certificate_replay import verify_certificate
from suture.sandbox import BubblewrapSandbox

FORGED = (Path(__file__).parent / "forged_at_3d33af8.json").read_bytes()


def test_it_is_refused_for_its_age() -> None:
    with pytest.raises(CertificateRefused, match="older format"):
        read_certificate(FORGED)


async def test_in_the_format_of_now_it_does_not_reproduce(
    sandbox: BubblewrapSandbox, settings: Settings
) -> None:
    plain = json.loads(FORGED)
    assert "from unittest.__main__ import" in plain["diff"]
    mutants = len(plain["mutation"]["mutants"])
    plain.update(format="suture-certificate/2", mutation={**plain["mutation"], "drawn": mutants})
    lifted = sealed(from_plain(Certificate, plain))
    findings = [found async for found in verify_certificate(lifted, {}, sandbox, settings, None)]
    last = findings[-1]
    assert (last.ok, last.name) == (False, "after")
    assert "certified 'passed', found 'failed'" in last.detail

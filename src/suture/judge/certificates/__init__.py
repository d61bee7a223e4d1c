"""Certificates: what was verified or judged about one change, in a file that can be replayed without a model.

This package owns the records of certificates, their sealed file format, and the replay that finds each statement
about a result true or false; the loop replays judgements. A certificate may come from anybody, so each statement is
checked before anything is run because of it. The package must not ask a model; what running code cannot confirm is
listed under `claims`, or is called a claim.
"""

from suture.judge.certificates.certificate import Certificate, InvalidCertificate, JudgementCertificate
from suture.judge.certificates.certificate_replay import ReplayedClaim
from suture.judge.certificates.verification import (
    find_certificate,
    load_any_certificate,
    load_certificate,
    locate_judgement,
    verify_certificate,
)

__all__ = [
    "Certificate",
    "InvalidCertificate",
    "JudgementCertificate",
    "ReplayedClaim",
    "find_certificate",
    "load_any_certificate",
    "load_certificate",
    "locate_judgement",
    "verify_certificate",
]

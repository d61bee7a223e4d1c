"""Proof of a healed result: its minimal diff, what was measured about it, and a certificate to replay.

It owns the certificate, how it is made and verified. It asks no model, and what running cannot prove stands
under `claims`.
"""

from suture.judge.proof.certificate import Certificate
from suture.judge.proof.sealing import CertificateRefused
from suture.judge.proof.verifying.certified_file import certificate_at, certificate_path, verify_file
from suture.judge.proof.verifying.verification import ReplayedClaim

__all__ = [
    "Certificate",
    "CertificateRefused",
    "ReplayedClaim",
    "certificate_at",
    "certificate_path",
    "verify_file",
]

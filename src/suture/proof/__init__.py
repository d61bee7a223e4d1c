"""Proof of a healed result: its minimal diff, what was measured about it, and a certificate to replay.

This room owns the certificate, how it is made and verified, and how a proven change is handed over to the
user, and taken back. It asks no model, and what running cannot prove stands under `claims`.
"""

from suture.proof.certificate import Certificate
from suture.proof.delivery import (
    Handover,
    HealedRun,
    choose_handover,
    hand_over,
    require_new,
    require_possible,
)
from suture.proof.sealing import CertificateRefused
from suture.proof.undo import Undone, find_applied_run, stands_applied, undo_run
from suture.proof.verifying.certified_file import certificate_at, certificate_path, verify_file
from suture.proof.verifying.verification import ReplayedClaim

__all__ = [
    "Certificate",
    "CertificateRefused",
    "Handover",
    "HealedRun",
    "ReplayedClaim",
    "Undone",
    "certificate_at",
    "certificate_path",
    "choose_handover",
    "find_applied_run",
    "hand_over",
    "require_new",
    "require_possible",
    "stands_applied",
    "undo_run",
    "verify_file",
]

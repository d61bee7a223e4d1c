"""Certificates: what was verified about one change, in a file that can be replayed without a model.

This package owns the certificate's records, its sealed file format, and the replay that finds each of its
statements true or false. A certificate may come from anybody, so each statement is checked before anything is
run because of it. The package must not ask a model; what running code cannot confirm stands under `claims`.
"""

from suture.judge.certificates.certificate import Certificate, InvalidCertificate
from suture.judge.certificates.certificate_replay import ReplayedClaim
from suture.judge.certificates.verification import find_certificate, load_certificate, verify_certificate_file

__all__ = [
    "Certificate",
    "InvalidCertificate",
    "ReplayedClaim",
    "find_certificate",
    "load_certificate",
    "verify_certificate_file",
]

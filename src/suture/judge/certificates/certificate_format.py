"""A certificate as a file: sealed, written, and read back; what was changed since is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from suture.core.records import content_hash, decode_record, encode_record
from suture.judge.certificates.certificate import FORMAT, Certificate

OLD_FORMATS = ("suture-certificate/1",)
"""Of these nobody can say how many mutants should have been run: their confidence proves nothing."""

NEWER = {"task": ("beside", "several", "project"), "claims": ("accepted_tests", "rivals", "share")}
"""Fields that came to this format later: an empty one is not written, so that older certificates stand."""

MAX_BYTES = 32 * 2**20
"""Anybody may have written a certificate: a larger one is refused before it is read as JSON."""


class InvalidCertificate(ValueError):
    """It is no certificate of this format, or was changed since it was sealed."""


def digest(content: bytes) -> str:
    """The SHA-256 of a file, as 64 hex digits."""
    return hashlib.sha256(content).hexdigest()


def sealed(certificate: Certificate) -> Certificate:
    """A certificate with the seal that it must have."""
    return replace(certificate, seal=_seal(_plain(certificate)))


def render_certificate(certificate: Certificate) -> str:
    """A certificate as a file: ASCII, so that no transport can change it."""
    return json.dumps(_plain(certificate), indent=1) + "\n"


def parse_certificate(content: bytes) -> Certificate:
    """Read a certificate.

    Raises:
        CertificateRefused: It is no certificate of this format, or was changed since it was sealed.
    """
    if len(content) > MAX_BYTES:
        raise InvalidCertificate("it is too large to be a certificate")
    try:
        # ASCII is all that `render_certificate` writes: no byte order mark, and one way to read each byte.
        plain = json.loads(content.decode("ascii"), object_pairs_hook=_once, parse_constant=_no_constant)
        said = plain.get("format") if isinstance(plain, dict) else None
        if said in OLD_FORMATS:
            raise InvalidCertificate(
                f"it is of the older format {said!r}, which does not bind how many mutants are run; "
                "heal again with this Suture, or verify it with the one that made it"
            )
        certificate = decode_record(Certificate, plain)
    except InvalidCertificate:
        raise
    except (ValueError, TypeError, AttributeError, RecursionError) as fault:
        raise InvalidCertificate(f"it is no certificate: {fault}") from fault
    if certificate.format != FORMAT:
        raise InvalidCertificate(f"its format is {certificate.format!r}, and this Suture reads {FORMAT!r}")
    if _written(plain) not in (_written(_plain(certificate)), _written(encode_record(certificate))):
        raise InvalidCertificate("it holds something that no certificate holds")
    if certificate.seal != _seal(_plain(certificate)):
        raise InvalidCertificate("it was changed since it was sealed")
    return certificate


def _plain(certificate: Certificate) -> dict[str, Any]:
    """A certificate as JSON values, without the fields of `NEWER` that are empty."""
    plain = encode_record(certificate)
    for group, names in NEWER.items():
        plain[group] = {key: value for key, value in plain[group].items() if value or key not in names}
    return plain


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are all different: of two, each reader may take another."""
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key in found if sum(key == other for other, _ in pairs) > 1)
        raise ValueError(f"the key {twice!r} is there more than once")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _written(plain: Any) -> str:
    """A value as text: `1`, `1.0` and `true` are equal for Python, and are not the same certificate."""
    return json.dumps(plain, sort_keys=True)


def _seal(plain: Mapping[str, Any]) -> str:
    return content_hash({key: value for key, value in plain.items() if key != "seal"})

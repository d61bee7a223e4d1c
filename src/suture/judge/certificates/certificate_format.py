"""The certificate's file format: JSON with a seal, written in one way and parsed strictly."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from suture.core.records import content_hash, decode_record, encode_record
from suture.judge.certificates.certificate import FORMAT, Certificate

MAX_BYTES = 32 * 2**20
"""Anybody may have written a certificate, so a larger file is refused before it is parsed."""


class InvalidCertificate(ValueError):
    """A file is not a certificate of this format, or was changed after it was sealed."""


def sha256_hex(content: bytes) -> str:
    """Return the SHA-256 of a file's content as 64 hex digits."""
    return hashlib.sha256(content).hexdigest()


def seal_certificate(certificate: Certificate) -> Certificate:
    """Return a certificate with its seal."""
    return replace(certificate, seal=_compute_seal(encode_record(certificate)))


def render_certificate(certificate: Certificate) -> str:
    """Return a certificate as the text of its file. It is ASCII, so that no transport changes it."""
    return json.dumps(encode_record(certificate), indent=1) + "\n"


def parse_certificate(content: bytes) -> Certificate:
    """Return the certificate that a file holds.

    Raises:
        InvalidCertificate: The content is not a certificate of this format, or was changed after sealing.
    """
    if len(content) > MAX_BYTES:
        raise InvalidCertificate(f"the file is larger than {MAX_BYTES >> 20} MiB")
    try:
        # `render_certificate` writes ASCII only: no byte order mark, and one way to read each byte.
        data = json.loads(
            content.decode("ascii"), object_pairs_hook=_reject_duplicates, parse_constant=_reject_constant
        )
        stated_format = data.get("format") if isinstance(data, dict) else None
        if stated_format != FORMAT:
            raise InvalidCertificate(f"the format is {stated_format!r}, and this Suture reads {FORMAT!r}")
        certificate = decode_record(Certificate, data)
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

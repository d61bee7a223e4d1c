"""Texts of faults that are not ours."""

from __future__ import annotations

import pytest

from suture.errors import describe_fault


def test_faults_are_described_without_numbers_and_codecs() -> None:
    assert describe_fault(OSError(98, "Address already in use")) == "Address already in use"
    assert describe_fault(ValueError("no such day")) == "no such day"
    with pytest.raises(UnicodeDecodeError) as caught:
        b"ab\xff".decode()
    assert describe_fault(caught.value) == "it is no UTF-8 text (byte 2)"

"""The limit on the output of a program."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from suture.sandbox.execution.process import CappedOutput


@given(st.lists(st.binary(max_size=50)), st.integers(2, 60))
def test_head_and_tail_are_kept_and_the_gap_is_marked(chunks: list[bytes], limit: int) -> None:
    output = CappedOutput(limit)
    for chunk in chunks:
        output.add(chunk)
    whole, kept, half = b"".join(chunks), output.content(), limit // 2

    assert output.truncated == (len(whole) > 2 * half)
    if output.truncated:
        assert (
            kept == whole[:half] + b"\n[... %d bytes omitted ...]\n" % (len(whole) - 2 * half) + whole[-half:]
        )
    else:
        assert kept == whole

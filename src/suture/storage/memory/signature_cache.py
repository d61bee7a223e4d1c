"""A cache of the signatures in an SQLite file, which compares all of them with that of a query in a few milliseconds.

PostgreSQL has an index for this. SQLite would call a Python function for each row, which takes 0.1 s for 100,000.
"""

from __future__ import annotations

import re
from array import array
from functools import lru_cache
from threading import Lock

from sqlalchemy import Connection, Select

from suture.storage.tuning import MAX_SIGNATURE_CACHES, READ_SIGNATURES, VECTOR_DIMENSIONS

SIGNATURE_BYTES = VECTOR_DIMENSIONS // 8
CACHE_LOCK = Lock()
"""Held while a cache is updated and searched, from before the transaction begins: snapshots then never go back."""


class SignatureCache:
    """The signatures that one query selects.

    Integer `k` of `_columns` holds byte `k` of all signatures, that of row `n` in its byte `n`. An operation on such a
    long integer works on all rows at once.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all rows, so that the next update reads them again."""
        self._ids = array("q")
        self._columns = [0] * SIGNATURE_BYTES
        self._last_row: tuple[int, bytes] | None = None

    def update(self, connection: Connection, rows: Select[tuple[int, bytes]]) -> None:
        """Read the rows that are new; ids only grow, and the signature of a row changes only when it is forgotten.

        Args:
            rows: Selects ids and signatures.
        """
        (row_id, _) = rows.selected_columns
        query = rows.order_by(row_id)
        if self._last_row is not None:
            cursor = connection.execute(query.where(row_id >= self._last_row[0])).cursor
            assert cursor is not None
            # Otherwise it was forgotten, or this is another file with the same name.
            if cursor.fetchone() != self._last_row:
                self.clear()
        if self._last_row is None:
            cursor = connection.execute(query).cursor  # its rows; those of SQLAlchemy double the time
            assert cursor is not None
        new_ids, blocks, last_row = array("q"), [], self._last_row
        while read := cursor.fetchmany(READ_SIGNATURES):
            ids, signatures = zip(*read, strict=True)
            new_ids.extend(ids)
            block = b"".join(signatures)
            blocks.append([block[position::SIGNATURE_BYTES] for position in range(SIGNATURE_BYTES)])
            last_row = read[-1]
        for position, parts in enumerate(zip(*blocks, strict=True)):
            self._columns[position] |= int.from_bytes(b"".join(parts), "little") << 8 * len(self._ids)
        self._ids += new_ids
        self._last_row = last_row

    def find_nearest(self, signature: bytes, limit: int) -> list[int]:
        """Return the ids of the rows whose signatures differ least from a given one, the nearest first."""
        halves, odd_bits = self._count_differing_bits(signature)
        half, found = 0, halves.count(0)
        while found < min(limit, len(halves)):
            half += 1
            found += halves.count(half)
        up_to_half = b"[\0-%b]" % re.escape(bytes([half]))
        positions = [match.start() for match in re.finditer(up_to_half, halves)]
        positions.sort(key=lambda position: 2 * halves[position] + odd_bits[position])  # ties by their ids
        return [self._ids[position] for position in positions[:limit]]

    def _count_differing_bits(self, signature: bytes) -> tuple[bytes, bytes]:
        """Return for each row half the number of bits in which it differs, which fits into a byte, and the rest."""
        count = len(self._ids)
        ones = int.from_bytes(b"\1" * count, "little")
        repeated = {byte: ones * byte for byte in signature}
        planes = [column ^ repeated[byte] for column, byte in zip(self._columns, signature, strict=True)]
        counts = []
        while planes:  # of bits that count 1, then 2, 4, ...
            carries = []
            while len(planes) > 1:
                # A full adder: the sum of three bits is a bit, and a carry that counts twice.
                first, second = planes.pop(), planes.pop()
                third = planes.pop() if planes else 0
                either = first ^ second
                planes.append(either ^ third)
                carries.append(first & second | either & third)
            counts.append(_count_bits_of_bytes(planes[0], ones))
            planes = carries
        halves = counts[0] >> 1 & ones * 0x7F
        halves += sum(bits << weight for weight, bits in enumerate(counts[1:]))
        # Should all 512 bits differ, 256 carries into the next byte; that row is then compared in vain.
        return halves.to_bytes(count + 1, "little")[:count], (counts[0] & ones).to_bytes(count, "little")


def _count_bits_of_bytes(number: int, ones: int) -> int:
    """Replace each byte of a number by how many of its bits are set; `ones` has a 1 in each byte."""
    pairs = number - (number >> 1 & ones * 0x55)
    nibbles = (pairs & ones * 0x33) + (pairs >> 2 & ones * 0x33)
    return nibbles + (nibbles >> 4) & ones * 0x0F


@lru_cache(maxsize=MAX_SIGNATURE_CACHES)
def get_signature_cache(*query: object) -> SignatureCache:
    """Return the cache of what a query selects, which its database, table and conditions identify."""
    return SignatureCache()

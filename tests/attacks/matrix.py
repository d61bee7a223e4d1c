"""All rows of the attack list."""

from __future__ import annotations

from attacks import (
    rows_exchange,
    rows_files,
    rows_host,
    rows_kernel,
    rows_languages,
    rows_network,
    rows_processes,
    rows_shared,
    rows_verdicts,
)
from attacks.trials import Row

__all__ = ["ROWS"]

ROWS: dict[int, Row] = {
    row.number: row
    for module in (
        rows_files,
        rows_processes,
        rows_network,
        rows_kernel,
        rows_exchange,
        rows_verdicts,
        rows_languages,
        rows_host,
        rows_shared,
    )
    for row in sorted(module.ROWS, key=lambda row: row.number)
}

"""Which user a program is to the kernel: one that is nobody else."""

from __future__ import annotations

UIDS = range(61184, 65520)
"""Where systemd puts its dynamic users, so that no account of a person is here."""

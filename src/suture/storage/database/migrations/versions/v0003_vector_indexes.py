"""Indexes of the embedded embedders' vectors on PostgreSQL; SQLite compares all of them."""

from __future__ import annotations

import hashlib

from alembic import op

revision = "0003"
down_revision = "0002"

EMBEDDERS = {"hashed-ngrams:1:512": 512, "minilm-l6-v2:384": 384}


def upgrade() -> None:
    """Make the indexes."""
    if op.get_bind().dialect.name != "postgresql":
        return
    for table in ("failures", "patterns", "lessons"):
        for embedder, size in EMBEDDERS.items():
            name = hashlib.sha256(embedder.encode()).hexdigest()[:8]
            named = embedder.replace(":", r"\:")
            op.execute(
                f"CREATE INDEX ix_{table}_{name}_vectors ON {table} "
                f"USING hnsw ((vector::vector({size})) vector_ip_ops) WHERE embedder = '{named}'"
            )

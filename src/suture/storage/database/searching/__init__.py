"""Finding rows: by words, and by the nearest vectors."""

"""What models said: one pool for all arms of a benchmark, and recordings of it that can be shared."""

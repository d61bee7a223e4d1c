"""Where a fault may lie, and which changes are tried first."""

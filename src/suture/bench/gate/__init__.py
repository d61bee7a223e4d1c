"""Quality gate: a sequential test over a fixed list of tasks, with exact error rates."""

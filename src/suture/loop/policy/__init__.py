"""What to do next, decided by numbers alone: the policy, what it sees of attempts, when a run is stuck."""

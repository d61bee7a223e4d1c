"""Grading a run's code after the run has ended, with hidden checks in a sandbox that no run has used."""

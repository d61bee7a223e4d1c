"""When a run has ended: its code against the hidden checks, and its claims behind another wall."""

"""What the roles besides the coder contribute to a run: tests, plans, critique, advice, simplification.

They inform. Only checks with enough trust decide.
"""

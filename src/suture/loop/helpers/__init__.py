"""What roles beside the coder contribute: tests, plans, critique, advice of plugins, tidying."""

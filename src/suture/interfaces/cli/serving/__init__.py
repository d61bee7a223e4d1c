"""Commands that serve other programs: each starts a front door of its own."""

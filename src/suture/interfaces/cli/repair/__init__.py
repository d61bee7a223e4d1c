"""Commands that change code, or decide about changes."""

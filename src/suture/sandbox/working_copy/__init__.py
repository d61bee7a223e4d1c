"""Commands that change a copy of a project behind a wall, and what they changed, brought back."""

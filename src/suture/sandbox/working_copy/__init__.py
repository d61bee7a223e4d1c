"""Running commands in a copy of a project inside the sandbox, and collecting what they changed."""

"""Running commands in a copy of a project inside the sandbox, and bringing back what they changed."""

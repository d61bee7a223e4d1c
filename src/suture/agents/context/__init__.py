"""What the coder is told about a task: the brief of a move, and the parts of the project that it shows."""

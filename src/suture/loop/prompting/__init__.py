"""What a model is told: the brief of a move, and the parts of a project that it is shown."""

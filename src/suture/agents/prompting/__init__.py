"""Read prompt files, render the parts of a prompt, and fit it into a model's context."""

"""What a language writes in its own way, for changes that put code into a file of it."""

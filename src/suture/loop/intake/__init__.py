"""What a user types becomes a `Task`: a statement with tests, or a folder with a failing test command."""

"""Finding the interpreters and toolchains of the host that a project uses."""

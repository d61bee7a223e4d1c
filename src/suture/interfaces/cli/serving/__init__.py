"""Commands that start servers for other programs, agents and editors."""

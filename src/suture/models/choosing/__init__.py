"""Which model a name, a role or `auto` means, and what its tokens cost."""

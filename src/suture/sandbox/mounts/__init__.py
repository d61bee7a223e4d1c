"""What of the host is shown behind a wall: folders, interpreters, toolchains, and what stands in for `/etc`.

This room finds and checks what may be seen; it starts nothing of a project's, and builds no wall.
"""

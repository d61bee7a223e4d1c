"""The wall made by a container engine: Docker or Podman on this machine, and gVisor where it is asked for.

This room owns talking to the engine. What runs inside is the zygote, the same as behind bubblewrap.
"""

from suture.sandbox.container.sandbox import ContainerSandbox

__all__ = ["ContainerSandbox"]

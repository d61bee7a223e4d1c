"""The container back end: Docker or Podman on this machine, with gVisor if the settings ask for it.

This package owns the conversation with the engine. What runs inside is the zygote, as with bubblewrap.
"""

from suture.sandbox.container.container_sandbox import ContainerSandbox

__all__ = ["ContainerSandbox"]

"""Checks of the behaviours that every sandbox must show. They work with any back end, including yours.

In a test module:

    import pytest
    from sandbox.conformance import BEHAVIOURS, Conformance

    @pytest.fixture(scope="module")
    def conformance():
        with Conformance(MySandbox) as suite:
            yield suite

    @pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=str)
    def test_conforms(conformance, behaviour):
        conformance.check(behaviour)

A behaviour about a limit is only checked for a sandbox that claims to enforce that limit. For a sandbox on
another machine, say which Python it has and that it mounts no folder of this machine:
`Conformance(MySandbox, interpreter="python3", mounts=False)`. The behaviours contain no attacks: a sandbox can
conform and still leak.
"""

from sandbox.conformance import conversations, files_and_mounts, lifecycle, limits, programs
from sandbox.conformance.behaviour import (
    Behaviour,
    Conformance,
    NotClaimed,
    SandboxUnderTest,
    Violation,
)

__all__ = ["BEHAVIOURS", "Behaviour", "Conformance", "NotClaimed", "SandboxUnderTest", "Violation"]

BEHAVIOURS: tuple[Behaviour, ...] = (
    *programs.BEHAVIOURS,
    *files_and_mounts.BEHAVIOURS,
    *limits.BEHAVIOURS,
    *conversations.BEHAVIOURS,
    *lifecycle.BEHAVIOURS,
)
"""Every behaviour that `Conformance` demands of a sandbox."""

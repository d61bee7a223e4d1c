"""Trust: how far generated checks can be trusted, from what they claim and how candidates behave under them.

This package owns the trust in checks that a model wrote. A check below `loop.trust_threshold` may inform a
repair and never decides one (law 4). It must not call a model, nor see a hidden test.
"""

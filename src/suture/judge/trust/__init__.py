"""How far generated checks can be trusted: what they claim, what candidates did with them, a score.

This folder owns the trust of checks that a model wrote. A check below `loop.trust_threshold` may inform a
repair; it never decides one (law 4). It must not ask a model, nor see a hidden test.
"""

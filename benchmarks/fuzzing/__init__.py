"""Attacks that a generator draws: what a candidate, a project or a model's server may choose, mixed.

Each file is one target. It owns its generator and says what must hold; it must not share a line with the
attacks of `tests/`, so that one can find what the other forgot.
"""

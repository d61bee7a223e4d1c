"""Generated attacks: what a candidate, a project or a model's server may choose, combined.

Each file is one target. It has its own generator and says what must hold. It shares no line with the attacks of
`tests/`, so that each can find what the other misses.
"""

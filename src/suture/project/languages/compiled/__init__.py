"""Java, Rust and C++: what their test runners report. A model repairs them; there is no search.

This package owns their entries of the table of languages. It must not start a program.
"""

"""One program behind a wall, from request to result: packed, started, talked with, limited, ended, told of.

What is the same for every backend is here; a backend adds the wall. Here too is what must run behind one.
"""

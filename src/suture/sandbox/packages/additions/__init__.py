"""Adding packages to an existing project: what is requested, written into the project's own manifest, and
locked.

Of a candidate's manifest only the names and versions of new packages are used. They are written into the project's own
file, and the rest of that file stays unchanged.
"""

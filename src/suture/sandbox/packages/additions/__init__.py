"""More packages for a project that is there: what is asked for, written down in its own manifest, and locked.

Nothing of a manifest that a candidate writes is taken but the names and versions of what is new in it. It is
written into the project's own text, of which all the rest stays as it is.
"""

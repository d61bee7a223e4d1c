"""Deliver a repair to the user's project, as files, a commit, a branch or a patch, and undo that again.

The user's tree and repository change only here, and only as the user asked.
"""

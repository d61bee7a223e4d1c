"""The field set: packages that nobody here wrote, with bugs that somebody else's tool made.

Only names, versions, hashes and descriptions of bugs are stored here. Code is downloaded, and bugs are made again.
"""

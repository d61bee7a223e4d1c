"""The field set: packages that nobody here wrote, with bugs that somebody else's tool made.

Only names, versions, hashes and the descriptions of bugs are kept here; code is fetched and made anew.
"""

"""The foundation of all other packages: records, the ledger and its budget, settings, plugins and safe file
access.

It imports nothing else of Suture but `suture.errors`, runs nothing and calls no model.
"""

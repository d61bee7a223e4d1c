"""Reporters that are put next to a project while its tests run. They write the outcome of each test, signed.

Each reporter reads the path of the report and the key from stdin once, before any test is loaded.
"""

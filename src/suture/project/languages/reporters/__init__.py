"""Reporters that lie beside a project while its tests run: they write what each test did, signed.

Each finds the report's path and the key on stdin, which is read once, before any test is loaded.
"""

"""A Python source as operators see it, and changes of it as edits that keep all else to the byte."""

"""Texts as vectors: one small interface, and what is behind it.

Two texts are alike as far as the dot product of their vectors says. Vectors of two embedders have nothing
to do with each other, so each is stored with its embedder's `identity`, and only equals are compared.
"""

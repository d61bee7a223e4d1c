"""Mutation operators for languages that tree-sitter parses."""

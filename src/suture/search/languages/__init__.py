"""What the search engine needs to know of a language: one contract, for Python and for the languages of tree-sitter."""

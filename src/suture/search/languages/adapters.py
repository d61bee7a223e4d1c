"""Selects the adapter of a language."""

from __future__ import annotations

from functools import lru_cache

from suture.core.records import Language
from suture.project.languages import LANGUAGES
from suture.search.languages.language_adapter import LanguageAdapter
from suture.search.languages.python_adapter import PYTHON
from suture.search.languages.tree_adapter import build_tree_adapter


@lru_cache(maxsize=8)
def get_adapter(language: Language) -> LanguageAdapter:
    """Return the adapter of a language: with Python's own parser, or with tree-sitter."""
    return PYTHON if LANGUAGES[language].parsed else build_tree_adapter(language)

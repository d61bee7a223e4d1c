from parsing.lines import balanced, parse_pairs, split_fields, tokenize

__all__ = ["balanced", "parse_pairs", "split_fields", "tokenize"]

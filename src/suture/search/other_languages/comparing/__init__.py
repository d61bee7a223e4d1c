"""Repairs of other languages told apart: what each answers, its rivals at its place, which is likeliest."""

"""Recipes: which moves a run may make, which roles help, and what plugins they name."""

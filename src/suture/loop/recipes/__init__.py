"""Recipes: which moves a run may make, which roles help, and which extensions of installed packages it uses."""

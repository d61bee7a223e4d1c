"""What is measured of a change that passes: the statements it touched, who runs them, who notices their loss.

This part counts and names; what the numbers are worth is `confidence`'s. Nothing here asks a model.
"""

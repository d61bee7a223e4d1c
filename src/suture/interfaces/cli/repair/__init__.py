"""The commands that change code, or decide what may."""

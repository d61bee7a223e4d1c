"""How a new project of each language is laid out, and how it is built, started and tested."""

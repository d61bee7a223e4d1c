"""The commands that say and change what Suture works with."""

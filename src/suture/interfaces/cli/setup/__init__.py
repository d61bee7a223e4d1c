"""Commands that show and change what Suture works with."""

"""The commands that read what runs left behind."""

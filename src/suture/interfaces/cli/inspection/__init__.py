"""Commands that read what runs left behind."""

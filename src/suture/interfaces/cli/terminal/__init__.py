"""The terminal: escaped text, progress, error messages and the options that commands share."""

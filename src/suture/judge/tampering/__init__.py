"""Signs that a change games the tests: it names their literals, takes behaviour away, hides exceptions."""

"""Law 1, looked for: nothing of the hidden checks may stand in what a model was asked."""

"""One paid call of a model: budgeted before it is made, fitted to the model, on disk before it is used."""

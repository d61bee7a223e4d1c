"""What a terminal shows and asks: text made harmless, progress, questions, faults, shared options."""

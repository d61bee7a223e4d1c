"""What rows add up to, and what such numbers can bear. No model and no sandbox is opened here."""

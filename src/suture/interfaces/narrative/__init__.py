"""What a run is told as, in words and as JSON, for every front door alike: from its ledger and folder."""

"""Every reply on disk by call hash, and answers from what was recorded."""

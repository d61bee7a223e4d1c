"""Questions to a person: what is asked, which answers are possible, and how an answer enters the run."""

"""A person in the loop: what is asked, and what may be answered."""

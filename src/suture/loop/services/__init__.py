"""The services of a run, each with one purpose: its suite, its candidates, its safety scan, its search prefetch."""

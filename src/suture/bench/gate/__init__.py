"""A quality gate over a fixed list of tasks: sequential, exact, with its error rates stated."""

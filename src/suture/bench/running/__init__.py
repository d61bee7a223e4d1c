"""Running benchmarks: plans, folders, evaluation of each row, control solvers and grading again."""

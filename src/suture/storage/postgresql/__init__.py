"""What only PostgreSQL provides: checkpoints, run folders and jobs that several machines share.

Nothing here is imported unless `store.runs` is `database`.
"""

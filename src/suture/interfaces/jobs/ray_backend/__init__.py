"""Jobs on a Ray cluster, kept in PostgreSQL and shared by several servers.

Imported only if the setting serve.executor is `ray`.
"""

"""The service of `suture serve`: REST and server-sent events over the api and the ledgers.

This room reads ledgers, hands jobs to the pool of `suture.interfaces.jobs`, and answers in JSON. It keeps no state of
its own: what it shows of a run is the run's ledger, and what was asked of it is the journal of jobs. It needs
the extra `serve`, whose packages nobody else imports.
"""

__all__: list[str] = []

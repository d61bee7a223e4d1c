"""The service of `suture serve`: REST and server-sent events over the api and the ledgers, and the web page.

This package reads ledgers, submits jobs to the pool of `suture.interfaces.jobs`, and answers in JSON. It
keeps no state of its own: a run is its ledger, and a request is in the journal of jobs. It needs the extra
`serve`, whose packages nothing else imports.
"""

__all__: list[str] = []

"""Ray: evaluate benchmark jobs on many machines. Only `suture bench run --ray` uses this folder."""

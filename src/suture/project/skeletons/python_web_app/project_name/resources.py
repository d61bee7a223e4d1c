"""The resources of the API: each dataclass has its own routes and its own table."""

"""Services for tests, such as a database, which run inside the sandbox together with the test command."""

from suture.sandbox.services.service_sandbox import ServiceSandbox

__all__ = ["ServiceSandbox"]

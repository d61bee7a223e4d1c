"""The zygote itself. It runs inside the sandbox on a bare interpreter, with nothing but the standard library."""

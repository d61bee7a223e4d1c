"""Models behind a protocol: connections, bounded HTTP, faults and retries, and usage that is checked."""

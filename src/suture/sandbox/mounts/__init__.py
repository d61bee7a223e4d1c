"""What the sandbox shows of the host: planned mounts, checked paths, and the files that replace `/etc`.

This package checks what may be shown. It builds no sandbox and starts nothing.
"""

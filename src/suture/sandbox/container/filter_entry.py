"""The entry point of a container: install the system call filter, then become the program that follows.

Started as `python -I -S -B -c SOURCE FILTER PROGRAM...`, with the filter in hexadecimal. A project's
interpreter runs code of its packages (`.pth` files, `sitecustomize`) before it reaches Suture's code, and
must not do so without the filter.
"""

import ctypes
import os
import sys

SET_SECCOMP, SET_NO_NEW_PRIVILEGES, SECCOMP_MODE_FILTER = 22, 38, 2
"""Constants of `linux/prctl.h` and `linux/seccomp.h`."""


class _FilterProgram(ctypes.Structure):
    """`struct sock_fprog` of `linux/filter.h`."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def main() -> None:
    """Install the filter irrevocably and become the program."""
    code = bytes.fromhex(sys.argv[1])
    program = _FilterProgram(len(code) // 8, code)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for arguments in (
        (SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0),
        (SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if prctl(*arguments) != 0:
            sys.exit(f"no system call filter: {os.strerror(ctypes.get_errno())}")
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()

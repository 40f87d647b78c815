"""
Become another program that is told to end (SIGTERM) when its parent is gone, however that went.

Run as a script by `service.children`, with the parent's process id and the command: it is replaced by
the command, so process id and output stay. Nothing of the product is imported, so it takes a moment
only. A parent that is killed can tell nobody; only Linux tells for it, elsewhere the child lives on.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie this process to its parent and become the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    # One that went before we were tied to it tells nothing any more.
    if os.getppid() == parent:
        os.execvp(command[0], command)  # noqa: S606 (what our parent asks for)


if __name__ == "__main__":
    main()

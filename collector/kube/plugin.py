"""
A credential plug-in with a limit of time.

Who asks one waits without limit, and so would everything that waits for him. This file is run as a program
that runs the plug-in: when the time is over it ends it, with all that it started.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

# Plug-ins of clouds take some seconds; whoever stops us is patient for thirty.
PLUGIN_SECONDS: Final = 20.0


def limited(execute: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """A kubeconfig's `exec` whose command is ended after so many seconds; as it is where it has none."""
    if not execute.get("command"):
        return dict(execute)
    command = [execute["command"], *(execute.get("args") or ())]
    # Isolated: its modules are those of Python, whatever lies beside this file.
    return {**execute, "command": sys.executable, "args": ["-I", __file__, str(seconds), *command]}


def main(seconds: float, command: Sequence[str]) -> int:
    """Run the plug-in and hand on what it says; gives its exit code."""
    try:
        plugin = subprocess.Popen(  # noqa: S603 (the program that the kubeconfig names)
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as cause:
        sys.stderr.write(f"{cause}\n")
        return 1
    try:
        said, complained = plugin.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(plugin.pid, signal.SIGKILL)
        sys.stderr.write(f"it said nothing for {seconds:g} s and was ended\n")
        return 1
    sys.stdout.buffer.write(said)
    sys.stderr.buffer.write(complained)
    return plugin.returncode


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))

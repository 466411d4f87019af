"""The first program inside the box: it puts on the limits, gives up its rights, and becomes the program.

It is started by path with a bare interpreter and imports nothing of the package. Its one argument is JSON: the limits,
the user to become (0: stay), and the program's command.
"""

from __future__ import annotations

import json
import os
import resource
import sys


def main() -> None:
    order = json.loads(sys.argv[1])
    for name, value in order["limits"].items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        most = value + (name == "CPU")  # one second more, so that the signal says what ended it
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (min(value, most), most))
    if order["user"]:
        os.setgroups([])
        os.setresgid(order["user"], order["user"], order["user"])
        os.setresuid(order["user"], order["user"], order["user"])
    os.umask(0o077)
    os.execve(order["command"][0], order["command"], order["environment"])


if __name__ == "__main__":
    main()

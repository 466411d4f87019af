"""The command line. Nothing heavy is imported before a command needs it: ``ramify --help`` answers at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command: 0 is done, 1 is a check that failed, 2 is bad input, with one message that says what to do."""
    from ramify.cli.app import app
    from ramify.cli.terminal import printable
    from ramify.errors import RamifyError

    try:
        app(args=None if arguments is None else list(arguments), prog_name="ramify")
    except SystemExit as done:
        return int(done.code or 0)
    except BrokenPipeError:  # the reader of a pipe has seen enough; nor may the interpreter write to it on its way out
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (RamifyError, OSError) as error:
        print(f"ramify: {printable(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("ramify: interrupted", file=sys.stderr)
        return 130
    return 0

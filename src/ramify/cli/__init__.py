"""The command line. Nothing heavy is imported before a command needs it: ``ramify --help`` answers at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. 0: done; 1: a check failed; 2: bad input, with one message that says what to do; 130: stopped."""
    from ramify.cli.app import app
    from ramify.cli.progress import GIVEN, Interrupted
    from ramify.cli.terminal import printable, spoken
    from ramify.errors import RamifyError

    given = list(sys.argv[1:] if arguments is None else arguments)
    GIVEN.set(given)
    try:
        if "--help" in given and "_RAMIFY_COMPLETE" not in os.environ:
            return _helped(given)
        app(args=given, prog_name="ramify")
    except SystemExit as done:
        if done.code == 130:
            print("ramify: interrupted", file=sys.stderr)
        return int(done.code or 0)
    except BrokenPipeError:  # the reader of a pipe has seen enough; nor may the interpreter write to it on its way out
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Interrupted as stopped:
        print(f"ramify: {printable(str(stopped))}", file=sys.stderr)
        return 130
    except (RamifyError, OSError) as error:
        print(f"ramify: {printable(spoken(str(error)))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("ramify: interrupted", file=sys.stderr)
        return 130
    return 0


def _helped(arguments: Sequence[str]) -> int:
    """The help of the command that the words before it name.

    Here and not in the parser, which loads a validation library of 80 ms to read the word ``--help``.
    """
    import typer

    from ramify.cli.app import app

    command = typer.main.get_command(app)
    context = command.context_class(command, info_name="ramify")
    for word in arguments:
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            break
        command = inner
        context = command.context_class(command, info_name=word, parent=context)
    typer.echo(context.get_help(), nl=False)
    return 0

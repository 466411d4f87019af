"""The groups of commands."""

from __future__ import annotations

import typer

from ramify.cli import bank

__all__ = ["app"]

app = typer.Typer(
    help="Test-time scaling of reasoning language models as one system: run it, measure it, trust it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.add_typer(bank.app, name="bank")


def _version(wanted: bool) -> None:
    if wanted:
        import ramify

        print(f"ramify {ramify.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Test-time scaling of reasoning language models as one system: run it, measure it, trust it."""

"""The command line. `main` is the program; a command is a function in the file of its noun."""

from service.cli.app import app, main, run

__all__ = ["app", "main", "run"]

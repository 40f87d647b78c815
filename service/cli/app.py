"""The program `gpuledger`: its commands, and how its errors end."""

import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from domain.errors import ProductError, UsageError
from service.cli import (
    alerts,
    chargeback,
    configuration,
    doctor,
    grafana,
    history,
    keeping,
    pending,
    processes,
    queries,
    quota,
    report,
    rules,
    why,
)

_HELP = """
Keeps the books of a Kubernetes GPU cluster: who waits, for how long, and who holds what.

See it on a sample:         gpuledger demo

Read a recorded cluster:    gpuledger import k8s FOLDER

Ask:                        gpuledger metrics queue_wait_seconds

Ask why a job waits:        gpuledger why NAMESPACE/NAME

Watch a live cluster:       gpuledger up --config gpuledger.yaml

A figure that begins with >= is a lower bound; one marked * rests on fewer than five.
"""

app = typer.Typer(
    name="gpuledger",
    help=_HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:  # noqa: FBT001 (typer's callback)
    if wanted:
        from service.version import version

        typer.echo(f"gpuledger {version()}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of the program itself."""


processes.add_to(app)
history.add_to(app)
queries.add_to(app)
pending.add_to(app)
why.add_to(app)
report.add_to(app)
alerts.add_to(app)
chargeback.add_to(app)
quota.add_to(app)
rules.add_to(app)
grafana.add_to(app)
doctor.add_to(app)
configuration.add_to(app)
keeping.add_to(app)


def run(arguments: Sequence[str]) -> int:
    """
    Run the program; gives its exit code.

    2 for usage, 3 for data, 4 for permission, 5 for a part that cannot be reached, 130 for Ctrl-C.
    """
    command = typer.main.get_command(app)
    try:
        result = command.main(args=list(arguments), prog_name="gpuledger", standalone_mode=False)
    except ProductError as error:
        _say(_in_options(str(error)) if isinstance(error, UsageError) else str(error))
        return error.exit_code
    except typer.TyperException as error:
        # A usage error formats itself with the names of its options; all of them are exit code 2.
        _say(getattr(error, "format_message", error.__str__)())
        return UsageError.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        # The reader, for example head, has seen enough; nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return result if isinstance(result, int) else 0


def _in_options(message: str) -> str:
    """
    The names of the API's parameters as this program's options.

    >>> _in_options("leave the window out, and choose the instant with as_of")
    'leave the window out, and choose the instant with --as-of'
    """
    return re.sub(
        r"(?<![\w-])(as_of|page_size)(?!\w)", lambda found: f"--{found[0].replace('_', '-')}", message
    )


def _say(message: str) -> None:
    if message:
        typer.echo("gpuledger: " + " ".join(message.split()), err=True)


def main() -> None:
    """Run the program with the arguments of this process."""
    sys.exit(run(sys.argv[1:]))

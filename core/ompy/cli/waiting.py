"""`ompy agent`: an agent that waits on its host for a launcher to call."""

from __future__ import annotations

import os
import signal
import sys
from typing import Final

import click

from ompy.cli.numbers import Number, WholeNumber
from ompy.cli.refusing import tell_error

PORT: Final = 27177  # arbitrary: below 32768, where Linux takes ports for clients
PATIENCE_S: Final = 600.0  # arbitrary: another host may have to fetch an image first
NOBODY: Final = 1  # exit code: no launcher came, or nothing could be begun


@click.command("agent")
@click.option(
    "--port",
    type=WholeNumber(0, 65535),
    default=PORT,
    show_default=True,
    help="Listen there; plm_dial_port says it to the launcher. 0: at a free one, which is printed.",
)
@click.option("--address", default=None, help="Listen at this address of the host only.")
@click.option(
    "--patience",
    type=Number(0, min_open=True),
    default=PATIENCE_S,
    show_default=True,
    metavar="S",
    help="End after so many seconds if no launcher has come.",
)
def agent(port: int, address: str | None, patience: float) -> None:
    """Wait for a launcher and be its agent on this host, for one job.

    For hosts on which nothing starts a program: containers, for one. The launcher is started by
    `ompy-run --mca plm_dial_port PORT --host ...`. Both prove themselves by the file that
    OMPY_SECRET_FILE names, or by MUNGE. Ends with 0 when the job is over, whatever that ended with,
    and with 1 when no launcher came. SIGTERM ends the ranks of this host, and so the job.
    """
    from ompy.runtime.connections.credentials import CredentialError, credentials
    from ompy.runtime.dialing.starting_dialer import LISTENS
    from ompy.runtime.dialing.waiting_agent import (
        end_while_waiting,
        listen_for_call,
        run_agent,
        wait_for_call,
    )
    from ompy.runtime.launching.launchers import SECRET

    signal.signal(signal.SIGTERM, end_while_waiting)
    secret = os.path.abspath(os.environ[SECRET]) if os.environ.get(SECRET) else ""
    try:
        known = credentials(secret)
        listener = listen_for_call(address or "", port)
    except CredentialError as problem:
        raise click.ClickException(str(problem)) from None
    except (OSError, ValueError) as problem:
        where = f"{address or 'any address'}, port {port}"
        why = getattr(problem, "strerror", None) or problem
        raise click.ClickException(f"{where}: cannot listen there: {why}") from None
    if not port:
        click.echo(f"{LISTENS}{listener.getsockname()[1]}")
    call = wait_for_call(listener, known, patience)
    if call is None:
        tell_error("ompy agent", f"no launcher came within {patience:g} s")
        sys.exit(NOBODY)
    sys.exit(run_agent(call, secret))

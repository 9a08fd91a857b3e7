"""`ompy ps` and `ompy top`: the jobs of this user that run, and what one of them does."""

from __future__ import annotations

import json
import os
from typing import Final

import click

from ompy import outputs
from ompy.cli.watching.live_jobs import JobGone, attach_to_job, list_jobs
from ompy.cli.watching.live_text import job_rows, stack_lines, table_lines, whole_text

NO_TEXTUAL: Final = (
    "the live view needs Textual: pip install 'ompy[top]'. Without it, --once prints one table"
)
NO_TERMINAL: Final = (
    "the live view needs a terminal; --once prints one table, --json the same for programs"
)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def ps(as_json: bool) -> None:
    """List your jobs that run on this host.

    What launchers have left that were killed is removed.
    """
    jobs = list_jobs()
    if as_json:
        click.echo(json.dumps([{"pid": one.name.pid, **one.said} for one in jobs], indent=2))
    elif not jobs:
        outputs.tell("no job of yours runs on this host\n")
    else:
        rows = job_rows((one.name.pid, one.said) for one in jobs)
        click.echo("\n".join(table_lines(rows)))


@click.command()
@click.argument("job", default="")
@click.option("--once", is_flag=True, help="Print one table and end.")
@click.option("--stacks", is_flag=True, help="Print where every thread of every rank is, and end.")
@click.option("--autopsy", is_flag=True, help="Print what every rank needs of others, and end.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON what the launcher says.")
def top(job: str, once: bool, stacks: bool, autopsy: bool, as_json: bool) -> None:
    """Watch a job of yours while it runs.

    JOB is the beginning of its id, as `ompy ps` lists it, or its launcher's process; the only job
    there is needs no name. What each rank is in and since when, what was sent to whom, queues,
    rails and what the launcher has found. Keys: a autopsy, s stacks, m messages or bytes, q quit.
    """
    try:
        found = attach_to_job(job)
        if stacks or autopsy:
            answer = found.ask_launcher("stacks" if stacks else "autopsy")
            lines = stack_lines(answer) if stacks else answer["lines"]
        elif once or as_json:
            said = found.ask_launcher("job")
            answer = {"about": said, **found.ask_launcher("ranks")}
            lines = whole_text(said, answer)
        else:
            if not (os.isatty(0) and os.isatty(1)):
                raise click.ClickException(NO_TERMINAL)
            _watch(found.name.job_id)
            return
    except JobGone as problem:
        raise click.ClickException(str(problem)) from None
    click.echo(json.dumps(answer, indent=2) if as_json else "\n".join(lines))


def _watch(job_id: str) -> None:
    try:
        from ompy.cli.watching.top_app import TopApp
    except ImportError:
        raise click.ClickException(NO_TEXTUAL) from None
    job = attach_to_job(job_id)
    TopApp(lambda: job).run()

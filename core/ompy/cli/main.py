"""`ompy`: the tools beside `ompy-run` and `ompy-info`."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ompy import __version__, outputs
from ompy.cli.build import build
from ompy.cli.completing.completion_scripts import completion
from ompy.cli.conformance import conformance
from ompy.cli.explaining.explain import explain
from ompy.cli.given_words import refuse_empty_words
from ompy.cli.kubernetes.command import k8s
from ompy.cli.measuring.bench import bench
from ompy.cli.mpiexec import mpiexec
from ompy.cli.new.command import new
from ompy.cli.refusing import tell_error, tell_refusal
from ompy.cli.replay import replay
from ompy.cli.simulating.sim import sim
from ompy.cli.start import FAILED
from ompy.cli.tracing.trace import trace
from ompy.cli.waiting import agent
from ompy.cli.watching.live import ps, top
from ompy.runtime.diagnosis.shortage import shortage

T = TypeVar("T")


class _Tools(click.Group):
    """Says it in a line when there is too little of something, or standard output takes nothing."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """As click's."""
        outputs.keep_standard_streams()
        if threading.current_thread() is threading.main_thread():
            # who ignores it is never told how a process has ended, and hands that on to us
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        try:
            return super().main(*arguments, **options)
        except (OSError, MemoryError, ImportError) as problem:
            told = problem.__context__
            if isinstance(told, click.ClickException):  # standard error did not take it
                sys.exit(told.exit_code)
            failure = (
                shortage(problem)
                or outputs.output_failure(problem)
                or outputs.working_directory_gone()
            )
            if not failure:
                raise
            tell_error("ompy", failure)
            sys.exit(FAILED)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """As click's, which writes help and versions here."""
        try:
            return _read(lambda: super(_Tools, self).make_context(*arguments, **options))
        except click.ClickException as problem:
            tell_refusal(problem, "ompy")
            sys.exit(problem.exit_code)

    def invoke(self, context: click.Context) -> Any:
        """As click's."""
        try:
            return _read(lambda: super(_Tools, self).invoke(context))
        except click.ClickException as problem:
            tell_refusal(problem, f"ompy {context.invoked_subcommand}")
            sys.exit(problem.exit_code)


def _read(command: Callable[[], T]) -> T:
    """End as other programs do when nobody reads standard output any more; click ends with 1."""
    try:
        made = command()
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        outputs.drop_standard_output()
        sys.exit(outputs.READER_GONE)
    return made


@click.group(cls=_Tools, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="ompy v%(version)s")
def main() -> None:
    """Tools of ompy: message passing you can see through and break on purpose."""


main.add_command(agent)
main.add_command(bench)
main.add_command(build)
main.add_command(completion)
main.add_command(conformance)
main.add_command(explain)
main.add_command(k8s)
main.add_command(mpiexec)
main.add_command(new)
main.add_command(ps)
main.add_command(replay)
main.add_command(sim)
main.add_command(top)
main.add_command(trace)
refuse_empty_words(main)


if __name__ == "__main__":
    main()

"""`ompy`: the tools beside `ompy-run` and `ompy-info`."""

from __future__ import annotations

import sys
from typing import Any

import click

from ompy import __version__
from ompy.cli.bench import bench
from ompy.cli.build import build
from ompy.cli.completion_scripts import completion
from ompy.cli.conformance import conformance
from ompy.cli.explain import explain
from ompy.cli.sim import sim
from ompy.cli.trace import trace
from ompy.outputs import output_failure


class _Tools(click.Group):
    """Says it in a line when standard output takes nothing."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """As click's."""
        try:
            return super().main(*arguments, **options)
        except OSError as problem:
            failure = output_failure(problem)
            if not failure:
                raise
            click.echo(f"Error: {failure}", err=True)
            sys.exit(1)


@click.group(cls=_Tools, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="ompy v%(version)s")
def main() -> None:
    """Tools of ompy: message passing you can see through and break on purpose."""


main.add_command(bench)
main.add_command(build)
main.add_command(completion)
main.add_command(conformance)
main.add_command(explain)
main.add_command(sim)
main.add_command(trace)


if __name__ == "__main__":
    main()

"""`ompy conformance`: whether an installed component keeps its contract, as a card."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NoReturn

import click

from ompy import outputs
from ompy.cli.terminal import wants_colour
from ompy.mca.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from ompy.frameworks.btl import BtlComponent

DOES_NOT_CONFORM: Final = 1  # exit codes; 2 is for the command line, as click has it
NOT_THERE: Final = 2


@click.group()
def conformance() -> None:
    """Test a component against its framework's contract."""


@conformance.command()
@click.argument("name")
@click.option("--mca", nargs=2, multiple=True, metavar="NAME VALUE", help="As for ompy-run.")
@click.option("--seed", type=int, help="Run tests that take a seed with this one only.")
@click.option(
    "--seeds", type=click.IntRange(min=1), help="Run tests that take a seed with so many, from 0."
)
@click.option("--test", "tests", multiple=True, metavar="TEST", help="Run this test only.")
@click.option("--json", "as_json", is_flag=True, help="Print the card for programs, with a badge.")
@click.option("-v", "--verbose", is_flag=True, help="Print failures in full.")
def btl(
    name: str,
    mca: tuple[tuple[str, str], ...],
    seed: int | None,
    seeds: int | None,
    tests: tuple[str, ...],
    as_json: bool,
    verbose: bool,
) -> None:
    """Test the installed BTL component NAME in the virtual world and print its card.

    Ends with 0 when nothing failed, with 1 when something did, with 2 when there is no such
    component. Settings come from --mca only.
    """
    component = _installed(name, mca)
    if importlib.util.find_spec("pytest") is None:
        _end("the conformance kit needs pytest: pip install 'ompy[conformance]'", NOT_THERE)
    from ompy.conformance.card import Card
    from ompy.conformance.plugin import examine

    sys.dont_write_bytecode = True  # pytest's is in no list of files: an uninstallation leaves it
    chosen = [seed] if seed is not None else list(range(seeds or 0))
    try:
        outcomes = examine(
            component, dict(mca), seeds=chosen, tests=tests, progress=_progress(as_json)
        )
    except LookupError as problem:
        _end(str(problem), NOT_THERE)
    card = Card(component, dict(mca), outcomes)
    if as_json:
        click.echo(json.dumps(card.document(), indent=2))
    else:
        colour = wants_colour("auto", os.environ)
        for line in card.lines():
            click.echo(line, color=colour)
        for outcome in card.failed if verbose else ():
            click.echo(f"\n{outcome.test}\n{outcome.report}", color=colour)
    sys.exit(DOES_NOT_CONFORM if card.failed else 0)


def _installed(name: str, mca: tuple[tuple[str, str], ...]) -> BtlComponent:
    """The component an installed distribution offers; ends the program when there is none."""
    from ompy.frameworks.btl import BtlComponent
    from ompy.frameworks.catalog import CATALOG
    from ompy.mca.registry import Registry
    from ompy.mca.settings import gather_settings

    try:
        registry = Registry(CATALOG, gather_settings(mca, {}, files=[]))
        records = registry.load("btl")
        registry.check_settings()
    except UsageError as problem:
        _end("\n".join(problem.problems), problem.exit_code)
    names = list(dict.fromkeys(record.name for record in records))
    if name not in names:
        _end(
            f"there is no btl component {name}{did_you_mean(name, names)} "
            f"(there are {', '.join(names)})",
            NOT_THERE,
        )
    record = next(record for record in records if record.name == name)
    component = record.component
    if component is None:
        _end(f"{record!r}\n{record.traceback}".rstrip(), DOES_NOT_CONFORM)
    assert isinstance(component, BtlComponent)
    return component


def _progress(as_json: bool) -> Callable[[int, int], None]:
    """Shows how far it is, to somebody who sits at a terminal."""
    shown = not as_json and sys.stderr is not None and sys.stderr.isatty()

    def tell(done: int, count: int) -> None:
        if shown:
            end = "\r\x1b[K" if done == count else ""
            outputs.tell(f"\r{done} of {count} tests{end}")

    return tell


def _end(text: str, code: int) -> NoReturn:
    outputs.tell(f"ompy: error: {text}\n")
    sys.exit(code)

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
from ompy.cli.numbers import WholeNumber
from ompy.cli.refusing import tell_error
from ompy.cli.terminal import wants_colour
from ompy.mca.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from ompy.conformance.plugin import Outcome, Subject
    from ompy.mca.plugins.component_records import ComponentRecord
    from ompy.mca.registry import Registry

DOES_NOT_CONFORM: Final = 1  # exit codes; 2 is for the command line, as click has it
NOT_THERE: Final = 2
# what there is a kit for, and what it is called in a sentence
SUBJECTS: Final = {
    "btl": "BTL component",
    "coll": "coll component",
    "hooks": "package of hooks",
    "nic": "nic component",
    "osc": "osc component",
    "pml": "PML component",
}

Settings = tuple[tuple[str, str], ...]


class _Kits(click.Group):
    """`hook` is `hooks`: a template is of one."""

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """As click's."""
        return super().get_command(context, "hooks" if name == "hook" else name)


@click.group(cls=_Kits)
def conformance() -> None:
    """Test a component against its framework's contract."""


def _command(framework: str, noun: str) -> click.Command:
    """The command for one framework."""

    def judge(
        name: str,
        mca: Settings,
        seed: int | None,
        seeds: int | None,
        tests: tuple[str, ...],
        as_json: bool,
        verbose: bool,
    ) -> None:
        component = _installed(framework, name, mca)
        chosen = [seed] if seed is not None else list(range(seeds or 0))
        _judge(component, dict(mca), chosen, tests, as_json=as_json, verbose=verbose)

    judge.__doc__ = (
        f"Test the installed {noun} NAME in the virtual world and print its card.\n\n"
        "Ends with 0 when nothing failed, with 1 when something did, with 2 when there is no such "
        f"{noun.rpartition(' of ')[0] or 'component'}. Settings come from --mca only."
    )
    options = (
        click.argument("name"),
        click.option(
            "--mca", nargs=2, multiple=True, metavar="NAME VALUE", help="As for ompy-run."
        ),
        click.option("--seed", type=int, help="Run tests that take a seed with this one only."),
        click.option(
            "--seeds",
            type=WholeNumber(min=1),
            help="Run tests that take a seed with so many, from 0.",
        ),
        click.option("--test", "tests", multiple=True, metavar="TEST", help="Run this test only."),
        click.option(
            "--json", "as_json", is_flag=True, help="Print the card for programs, with a badge."
        ),
        click.option("-v", "--verbose", is_flag=True, help="Print failures in full."),
    )
    for option in reversed(options):
        judge = option(judge)
    return click.command(framework)(judge)


def _judge(
    component: Subject,
    settings: dict[str, str],
    seeds: list[int],
    tests: tuple[str, ...],
    *,
    as_json: bool,
    verbose: bool,
) -> NoReturn:
    """Run the kit and print the card; ends the program."""
    if importlib.util.find_spec("pytest") is None:
        _end("the conformance kit needs pytest: pip install 'ompy[conformance]'", NOT_THERE)
    from ompy.conformance.card import Card
    from ompy.conformance.plugin import examine

    sys.dont_write_bytecode = True  # pytest's is in no list of files: an uninstallation leaves it
    outcomes: list[Outcome] = []
    try:
        outcomes = examine(
            component, settings, seeds=seeds, tests=tests, progress=_progress(as_json)
        )
    except LookupError as problem:
        _end(str(problem), NOT_THERE)
    card = Card(component, settings, outcomes)
    if as_json:
        click.echo(json.dumps(card.document(), indent=2))
    else:
        colour = wants_colour("auto", os.environ)
        for line in card.lines():
            click.echo(line, color=colour)
        for outcome in card.failed if verbose else ():
            click.echo(f"\n{outcome.test}\n{outcome.report}", color=colour)
    sys.exit(DOES_NOT_CONFORM if card.failed else 0)


def _installed(framework: str, name: str, mca: Settings) -> Subject:
    """What an installed distribution offers by a name; ends the program when there is none."""
    from ompy.frameworks.catalog import CATALOG
    from ompy.mca.parameters.settings import gather_settings
    from ompy.mca.registry import Registry

    try:
        registry = Registry(CATALOG, gather_settings(mca, {}, files=[]))
        records = (
            registry.records_of(framework) if framework == "hooks" else registry.load(framework)
        )
        registry.check_settings()
    except UsageError as problem:
        _end("\n".join(problem.problems), problem.exit_code)
    names = list(dict.fromkeys(record.name for record in records))
    if name not in names:
        there = f"there are {', '.join(names)}" if names else "there is none"
        what = "package" if framework == "hooks" else "component"
        _end(
            f"there is no {framework} {what} {name}{did_you_mean(name, names)} ({there})", NOT_THERE
        )
    record = next(record for record in records if record.name == name)
    if framework == "hooks":
        return _hooks(registry, record)
    component = record.component
    if component is None:
        _end(f"{record!r}\n{record.traceback}".rstrip(), DOES_NOT_CONFORM)
    return component


def _hooks(registry: Registry, record: ComponentRecord) -> Subject:
    """A package of hooks; ends the program when it cannot be imported."""
    loaded = dict(registry.load_hooks()).get(record)
    if loaded is None:
        _end(f"{record!r}\n{record.traceback}".rstrip(), DOES_NOT_CONFORM)
    if importlib.util.find_spec("pytest") is None:
        _end("the conformance kit needs pytest: pip install 'ompy[conformance]'", NOT_THERE)
    from ompy.conformance.hooks.hook_suite import HookPackage

    return HookPackage(loaded, record.name, record.version)


def _progress(as_json: bool) -> Callable[[int, int], None]:
    """Shows how far it is, to somebody who sits at a terminal."""
    shown = not as_json and sys.stderr is not None and sys.stderr.isatty()

    def tell(done: int, count: int) -> None:
        if shown:
            end = "\r\x1b[K" if done == count else ""
            outputs.tell(f"\r{done} of {count} tests{end}")

    return tell


def _end(text: str, code: int) -> NoReturn:
    tell_error("ompy conformance", text)
    sys.exit(code)


for _framework, _noun in SUBJECTS.items():
    conformance.add_command(_command(_framework, _noun))

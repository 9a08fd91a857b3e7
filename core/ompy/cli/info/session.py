"""One run of `ompy-info`: what is asked for, in the order of reference openmpi.md 2.1.2."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ompy import outputs
from ompy.cli.info import PROGRAM, version
from ompy.cli.info import facts as about
from ompy.cli.info.document import Json
from ompy.cli.info.facts import TYPES_OF_PATH, Fact
from ompy.cli.info.parsable import Parsable
from ompy.cli.info.pretty import Pretty
from ompy.cli.info.view import ALL, NotFound, Scope, View
from ompy.cli.refusing import tell_error
from ompy.cli.terminal import wants_colour, wrap_width
from ompy.frameworks.catalog import CATALOG
from ompy.mca.errors import ComponentsFailed, UsageError, did_you_mean
from ompy.mca.parameter import LEVELS
from ompy.mca.parameters.settings import gather_settings
from ompy.mca.registry import Registry

if TYPE_CHECKING:
    from ompy.cli.info.command import Options
    from ompy.cli.info.model import Output, Story
    from ompy.mca.parameters.settings import Setting

NOT_FOUND: Final = 1  # reference openmpi.md 2.1.3: exit code
SCHEMA: Final = Path(__file__).with_name("schema.json")


def answer_request(options: Options) -> int:
    """Show what is asked for. Returns the exit code."""
    if options.json_schema:
        click.echo(SCHEMA.read_text(encoding="utf-8"), nl=False)
        return 0
    if options.version and options.form == "pretty":
        click.echo(version())
        return 0
    output = output_for(options)
    try:
        _check_words(options)
        if options.version:
            output.facts([*about.versions(), about.form()])
        elif options.installation and not options.views:
            output.facts(_installation(options))
        else:
            problems: list[str] = []
            settings = gather_settings(options.pairs, os.environ, problems=problems)
            registry = Registry(CATALOG, settings)
            return Session(options, output, registry, settings, problems).answer()
    except NotFound as problem:
        tell_error(PROGRAM, str(problem))
        return NOT_FOUND
    output.finish([], [])
    return 0


def output_for(options: Options) -> Output:
    """The format that is asked for."""
    if options.form == "json":
        return Json()
    if options.form == "parsable":
        return Parsable()
    colour = wants_colour(options.color, os.environ)
    return Pretty(wrap_width(), colour=colour, tracebacks=options.show_failed)


def _check_words(options: Options) -> None:
    """Raises NotFound for what does not exist whatever the settings are."""
    if options.level is not None and options.level not in LEVELS:
        first, last = min(LEVELS), max(LEVELS)
        raise NotFound(
            f"there is no level {options.level} (there are {first} for users to {last} for "
            "developers)"
        )
    kinds = [*TYPES_OF_PATH, ALL]
    for kind in options.paths:
        if kind not in kinds:
            usage = f"Usage: {PROGRAM} --path TYPE; TYPE is one of {', '.join(kinds)}"
            raise NotFound(f"there is no path {kind}{did_you_mean(kind, kinds)}\n{usage}")


def _installation(options: Options) -> list[Fact]:
    """Facts about the installation; some are there when nothing is asked for, too."""
    environ = os.environ
    default = not (options.installation or options.views)
    everything = options.everything
    facts = about.versions() if default or everything else []
    for kind in [ALL] if everything else options.paths or (["prefix"] if default else []):
        facts += about.path_facts(kind, environ)
    if options.arch or default or everything:
        facts += about.architecture()
    if options.hostname or default or everything:
        facts += about.hostname()
    if options.config or everything:
        facts += about.configuration()
    elif default:
        facts += about.short_configuration()
    return facts


class Session:
    """A run that looks at components and settings."""

    def __init__(
        self,
        options: Options,
        output: Output,
        registry: Registry,
        settings: Sequence[Setting],
        problems: Sequence[str] = (),
    ) -> None:
        """Check the settings.

        Args:
            options: what is asked for.
            output: the format.
            registry: as a job would have it, not checked yet.
            settings: what it was made with.
            problems: what was wrong when they were gathered.
        """
        self._options = options
        self._output = output
        self._registry = registry
        self._problems = list(problems)
        level = options.level or (max(LEVELS) if options.everything else min(LEVELS))
        scope = Scope(level, options.internal, options.selected_only, options.show_failed)
        self._view = View(registry, settings, output, scope)
        self._exit_code = UsageError.exit_code if problems else 0
        self._failures: Sequence[str] = ()
        try:
            registry.check_settings()
        except ComponentsFailed as error:  # the settings are right: everything can be shown
            self._failures = error.problems
            self._exit_code = self._exit_code or error.exit_code
        except UsageError as error:
            self._problems += error.problems
            self._exit_code = error.exit_code
        self._notices = [] if self._problems else registry.notices()

    def answer(self) -> int:
        """Show what is asked for, or what is wrong. Returns the exit code.

        Raises:
            NotFound: something named does not exist; then nothing was shown.
        """
        options = self._options
        for problem in (*self._problems, *self._failures):
            tell_error(PROGRAM, str(problem))
        for notice in self._notices:
            outputs.tell(f"{PROGRAM}: warning: {notice}\n")
        params = [(ALL, ALL)] if options.everything else options.params
        chosen = [(self._view.frameworks(*param), param[1]) for param in params]
        types = [self._view.type_named(name) for name in options.types]
        stories = [self._view.story(name) for name in options.why]
        if not self._problems:
            self._output.facts(_installation(options))
            self._parameters(chosen, types)
        elif options.installation:
            self._output.facts(_installation(options._replace(everything=False)))
        self._plugins(stories)
        for problem in self._view.problems:
            outputs.tell(f"{PROGRAM}: warning: {problem} (its component is excluded)\n")
        self._insist()
        self._output.finish([*self._problems, *self._failures], self._notices)
        return self._exit_code

    def _insist(self) -> None:
        """What failed when it was opened is an error, where a job could not start without."""
        late = list(self._view.failures)
        try:
            self._registry.insist()
        except ComponentsFailed as error:
            late += error.problems
        told = (*self._problems, *self._failures)
        late = [problem for problem in dict.fromkeys(late) if problem not in told]
        for problem in late:
            tell_error(PROGRAM, str(problem))
        if late:
            self._failures = [*self._failures, *late]
            self._exit_code = self._exit_code or ComponentsFailed.exit_code

    def _parameters(self, chosen: Sequence[tuple[Sequence[str], str]], types: list[str]) -> None:
        if not (self._options.views or self._options.installation):
            self._view.components()
        for frameworks, component in chosen:
            self._view.parameters(frameworks, component)
        for name in types:
            self._view.of_type(name)

    def _plugins(self, stories: Sequence[Story]) -> None:
        if self._options.plugins:
            self._view.plugins()
        if self._options.pvars:
            self._view.pvars()
        for story in stories:
            self._output.story(story)

"""What a shell may complete a word of our command lines to.

The functions are given to click's options as `shell_complete`. Nothing is opened, and what a
component writes while it is imported is kept from the terminal.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from ompy.mca.errors import UsageError
from ompy.mca.parameter import LEVELS, TYPES, Flag

if TYPE_CHECKING:
    from ompy.mca.parameter import Parameter
    from ompy.mca.registry import Registry

Items = list[CompletionItem[str]]

WORDS: Final = "ompy.words"  # where a context keeps the words before the one to complete
ALL: Final = "all"
SET_OPTIONS: Final = frozenset({"--mca", "-mca", "--gmca", "-gmca"})
FILE: Final = "file"  # click's word for: let the shell list files
DIRECTORY: Final = "dir"  # click's word for: let the shell list directories


class WordKeepingCommand(click.Command):
    """A command whose completions may look at the words before."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Keep the words, which parsing uses up."""
        words = tuple(args)
        context = super().make_context(info_name, args, parent, **extra)
        context.meta[WORDS] = words
        return context


def answer_completion(command: click.Command, program: str, variable: str) -> int:
    """Do what one of the completion scripts asks for. Returns the exit code.

    Args:
        command: whose words are completed.
        program: its name.
        variable: of the environment, where the script says what it asks for.
    """
    from click.shell_completion import add_completion_class, shell_complete

    from ompy.cli.completing.completion_scripts import SHELLS

    for shell in SHELLS.values():
        add_completion_class(shell)
    return shell_complete(command, {}, program, variable, os.environ[variable])


# One function for each kind of argument


def complete_component(context: click.Context, option: click.Parameter, incomplete: str) -> Items:
    """`--param FRAMEWORK COMPONENT`."""
    registry = _registry(context)
    given = _given(context, option)
    if not given:
        helps = {name: framework.help for name, framework in registry.frameworks.items()}
        return _matching({ALL: "all frameworks"} | helps, incomplete)
    chosen = list(registry.frameworks) if given[0] == ALL else given
    names = {record.name: "" for fw in chosen for record in registry.records_of(fw)}
    return _matching({ALL: "all components", "base": "the framework itself"} | names, incomplete)


def complete_parameter(context: click.Context, option: click.Parameter, incomplete: str) -> Items:
    """`--mca NAME VALUE`."""
    registry = _registry(context)
    given = _given(context, option)
    if given:
        return _values(registry, given[0], incomplete)
    return _matching(_parameters(registry, incomplete, settable=True), incomplete)


def complete_name(context: click.Context, _option: click.Parameter, incomplete: str) -> Items:
    """`--why NAME`."""
    registry = _registry(context)
    names = {record.name: record.framework for record in registry.records}
    return _matching(names | _parameters(registry, incomplete, settable=False), incomplete)


def complete_type(_context: click.Context, _option: click.Parameter, incomplete: str) -> Items:
    """`--type TYPE`."""
    return _matching(dict.fromkeys(TYPES, ""), incomplete)


def complete_level(_context: click.Context, _option: click.Parameter, incomplete: str) -> Items:
    """`--level N`."""
    return _matching({str(level): name for level, name in LEVELS.items()}, incomplete)


def complete_path_type(_context: click.Context, _option: click.Parameter, incomplete: str) -> Items:
    """`--path TYPE`."""
    from ompy.cli.info.facts import TYPES_OF_PATH

    return _matching(dict.fromkeys([*TYPES_OF_PATH, ALL], ""), incomplete)


def complete_file(context: click.Context, _option: click.Parameter, incomplete: str) -> Items:
    """`--tune FILE,...` and `--am NAME,...`: parameter sets by name, and files."""
    from ompy.mca.parameters.parameter_files import SUFFIX

    head, comma, last = incomplete.rpartition(",")
    sets = [
        name.removesuffix(SUFFIX)
        for directory in _set_directories(context)
        if os.path.isdir(directory)
        for name in os.listdir(directory)
        if name.endswith(SUFFIX)
    ]
    found = [name for name in sorted(set(sets)) if name.startswith(last)]
    found += [name for name in _files(last) if name.endswith(SUFFIX)]
    if not found and not comma:
        return [CompletionItem(incomplete, type=FILE)]
    # a shell lists either files or what it is told, so behind a comma it has to be told files, too
    return [CompletionItem(f"{head}{comma}{name}") for name in found or _files(last)]


def complete_directory(_context: click.Context, _option: click.Parameter, incomplete: str) -> Items:
    """A directory."""
    return [CompletionItem(incomplete, type=DIRECTORY)]


def complete_variable(_context: click.Context, _option: click.Parameter, incomplete: str) -> Items:
    """`-x NAME`: a variable of the environment."""
    return _matching(dict.fromkeys(sorted(os.environ), ""), incomplete)


def complete_rank(_context: click.Context, _option: click.Parameter, incomplete: str) -> Items:
    """`--stdin RANK`."""
    return _matching({"none": "no rank", "0": "the first rank"}, incomplete)


# What there is


def _given(context: click.Context, option: click.Parameter) -> list[str]:
    """The arguments of the option that stand before the word to complete."""
    words: Sequence[str] = context.meta.get(WORDS, ())
    for place in range(len(words) - 1, -1, -1):
        if words[place] in option.opts:
            return list(words[place + 1 :])
    return []


def _registry(context: click.Context) -> Registry:
    """As the job would have it, as far as its settings can be understood."""
    from ompy.frameworks.catalog import CATALOG
    from ompy.mca.parameters.settings import gather_settings
    from ompy.mca.registry import Registry

    words: Sequence[str] = context.meta.get(WORDS, ())
    pairs = [
        (words[place + 1], words[place + 2])
        for place in range(len(words) - 2)
        if words[place] in SET_OPTIONS
    ]
    return Registry(CATALOG, gather_settings(pairs, os.environ, problems=[]))


def _set_directories(context: click.Context) -> list[str]:
    """Where parameter sets are looked for."""
    from ompy.mca.parameters.settings import SEARCH_PATH

    try:
        return str(_registry(context).value(SEARCH_PATH)).split(os.pathsep)
    except UsageError:
        return []


def _parameters(registry: Registry, incomplete: str, *, settable: bool) -> dict[str, str]:
    """Full names that may begin so, with their help; imports only what may have such."""
    found: dict[str, str] = {}
    from ompy.mca.parameters.base_parameters import own_parameters

    unwanted = Flag.INTERNAL | (Flag.DEFAULT_ONLY if settable else Flag.NONE)
    for name, framework in registry.frameworks.items():
        if not (name.startswith(incomplete) or incomplete.startswith(name)):
            continue
        parameters = own_parameters(framework)
        for component, declared in _loaded(registry, name):
            parameters |= {f"{name}_{component}_{own.name}": own for own in declared}
        for full_name, parameter in parameters.items():
            if not parameter.flags & unwanted:
                found[full_name] = parameter.help
    return found


def _loaded(registry: Registry, framework: str) -> Iterator[tuple[str, Sequence[Parameter]]]:
    """The components of a framework that can be imported, and their parameters."""
    with _silence():
        records = registry.load(framework)
    for record in records:
        if record.component is not None:
            yield record.name, record.component.parameters


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep whatever a component says at its import out of the answer and off the terminal."""
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


def _values(registry: Registry, name: str, incomplete: str) -> Items:
    """What the parameter `name` may be set to."""
    from ompy.mca.enumerators import FlagEnumerator

    framework = registry.frameworks.get(name)
    if framework is not None and framework.api is not None:
        words = {record.name: "" for record in registry.records_of(name)}
        return _several(words, incomplete, negated=True)
    try:
        with _silence():
            _, parameter = registry.declaration(name)
    except UsageError:
        return []
    if parameter.choices is not None:
        return _matching(dict(parameter.choices), incomplete)
    if parameter.enumerator is None:
        return []
    words = dict.fromkeys(parameter.enumerator.words, "")
    if isinstance(parameter.enumerator, FlagEnumerator):
        return _several(words, incomplete)
    return _matching(words, incomplete)


def _several(words: dict[str, str], incomplete: str, *, negated: bool = False) -> Items:
    """Lists that a comma and one more word may go on; a `^` may stand before all."""
    head, comma, last = incomplete.rpartition(",")
    mark = "^" if negated and not comma and last.startswith("^") else ""
    taken = set(head.lstrip("^").split(","))
    left = {word: text for word, text in words.items() if word not in taken}
    return _matching(
        {f"{head}{comma}{mark}{word}": text for word, text in left.items()}, incomplete
    )


def _files(prefix: str) -> Iterable[str]:
    """Files and directories whose path begins so."""
    directory, _, start = prefix.rpartition("/")
    where = f"{directory}/" if "/" in prefix else ""
    try:
        names = sorted(os.listdir(where or "."))
    except OSError:
        return
    for name in names:
        if name.startswith(start) and (start or not name.startswith(".")):
            yield where + name


def _matching(words: dict[str, str], incomplete: str) -> Items:
    """Those of the words that begin so, with what they mean."""
    return [
        CompletionItem(word, help=text or None)
        for word, text in words.items()
        if word.startswith(incomplete)
    ]

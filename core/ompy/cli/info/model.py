"""What `ompy-info` shows, before it has a format: each format is an `Output`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ompy.cli.info.facts import Fact
from ompy.mca.component import Component
from ompy.mca.groups import HOOKS
from ompy.mca.parameter import Flag, Parameter, Synonym
from ompy.mca.parameters.settings import Setting
from ompy.mca.parameters.variables import Variable
from ompy.mca.performance import PerformanceVariable
from ompy.mca.plugins.component_records import ComponentRecord, State

if TYPE_CHECKING:
    from ompy.frameworks.collectives.coll_selection import Row

# what is open and not passed over a job uses wherever it is of use: BTLs, for the peers they reach
IN_USE: Final = frozenset({State.OPENED, State.SELECTED})


class ShownComponent(NamedTuple):
    """A component in a list.

    Attributes:
        record: what became of it.
        component: the object, if it could be imported and may be.
        excluded: the selection excludes it.
        failed: it was to be used and failed.
    """

    record: ComponentRecord
    component: Component | None
    excluded: bool
    failed: bool


class Entry(NamedTuple):
    """A parameter under one of its names.

    Attributes:
        name: in full.
        variable: the parameter with its value.
        synonym: how this name was declared, if it is not the main one.
        synonyms: the other names, if it is.
        writeable: it can be set now.
    """

    name: str
    variable: Variable
    synonym: Synonym | None
    synonyms: tuple[str, ...]
    writeable: bool

    @property
    def parameter(self) -> Parameter:
        """Its declaration."""
        return self.variable.parameter

    @property
    def kind(self) -> str:
        """Whether the user can set it at all (reference openmpi.md 2.2.4)."""
        return "informational" if self.parameter.flags & Flag.DEFAULT_ONLY else "parameter"

    @property
    def deprecated(self) -> bool:
        """Whether this name earns whoever uses it a warning."""
        flags = self.parameter.flags | (self.synonym.flags if self.synonym else Flag.NONE)
        return bool(flags & Flag.DEPRECATED)

    @property
    def shadowed(self) -> Sequence[Setting]:
        """What was set and lost, told once and not again for each synonym."""
        return () if self.synonym is not None else self.variable.shadowed


class ParameterGroup(NamedTuple):
    """The parameters of a component, or of a framework itself.

    Attributes:
        framework: its name.
        component: its name, `base` for the framework itself.
        excluded: the selection excludes the component.
        entries: what is shown, synonyms behind their parameter.
        hidden: how many parameters are of a higher level.
    """

    framework: str
    component: str
    excluded: bool
    entries: Sequence[Entry]
    hidden: int


class Candidate(NamedTuple):
    """One place that sets a parameter.

    Attributes:
        verdict: `used`, `lost` to a better one, `ignored`, or `wrong`.
        text: the value given.
        source: as a sentence has it, `file (/etc/ompy-mca-params.conf:3)`.
        reason: of `ignored` and `wrong`.
    """

    verdict: str
    text: str
    source: str
    reason: str = ""


class ParameterStory(NamedTuple):
    """Why a parameter has its value.

    Attributes:
        name: its main name; if there is no such parameter, the one that was set.
        asked: the name asked for.
        candidates: best first; the default last.
    """

    name: str
    asked: str
    candidates: Sequence[Candidate]


class ComponentStory(NamedTuple):
    """What became of a component.

    Attributes:
        framework: its name.
        name: its name.
        selection: what the selection parameter says, and where; empty if it cannot be read.
        selection_source: where the selection comes from.
        records: of each distribution that offers it, the one that counts first.
    """

    framework: str
    name: str
    selection: str
    selection_source: str
    records: Sequence[ComponentRecord]


class Choice(NamedTuple):
    """Which component serves which operation of one kind of communicator.

    Attributes:
        where: which kind.
        rows: of each operation; empty if nobody can tell.
        problem: why not.
    """

    where: str
    rows: Sequence[Row]
    problem: str = ""


class Story(NamedTuple):
    """All that is known of a name.

    Attributes:
        asked: the name.
        parameter: of this name, or None.
        components: of this name, or of the framework of this name.
        choices: for coll: which component would serve which operation.
    """

    asked: str
    parameter: ParameterStory | None
    components: Sequence[ComponentStory]
    choices: Sequence[Choice] = ()


Counted = tuple[str, str, PerformanceVariable]  # framework, component, one of its variables


class Output(Protocol):
    """A format. What it is given comes in the order it is to be shown."""

    def facts(self, facts: Sequence[Fact]) -> None:
        """Facts about the installation."""

    def component(self, shown: ShownComponent) -> None:
        """A component with its versions, or why it is not used."""

    def group(self, group: ParameterGroup) -> None:
        """The parameters of a component."""

    def plugins(self, records: Sequence[ComponentRecord]) -> None:
        """Everything the installed packages offer."""

    def pvars(self, variables: Sequence[Counted]) -> None:
        """The performance variables of components."""

    def story(self, story: Story) -> None:
        """Why a value is in force, or what became of a component."""

    def finish(self, problems: Sequence[str], notices: Sequence[str]) -> None:
        """The end; what is wrong with the settings has been told on standard error."""


def explanation(record: ComponentRecord) -> str:
    """Why a component is in its state, and what is odd about it."""
    return "; ".join(filter(None, (record.reason, record.remark)))


def verdict(record: ComponentRecord) -> str:
    """What became of one of several that offer a component."""
    used = record.state in IN_USE or (record.framework, record.state) == (HOOKS.name, State.LOADED)
    return "used" if used else "lost"


def enumerator_words(parameter: Parameter) -> list[tuple[int, str]]:
    """The words that stand for numbers, with these."""
    if parameter.enumerator is None:
        return []
    return [(number, word) for word, number in parameter.enumerator.words.items()]


def valid_values(parameter: Parameter) -> str:
    """What a parameter may be set to, for people; empty if anything of its type."""
    texts = []
    if parameter.choices:
        texts += [f"{word} ({meaning})" for word, meaning in parameter.choices.items()]
    elif parameter.enumerator is not None:
        texts.append(parameter.enumerator.valid())
    if parameter.minimum is not None and parameter.maximum is not None:
        texts.append(f"{parameter.minimum} - {parameter.maximum}")
    elif parameter.minimum is not None:
        texts.append(f"at least {parameter.minimum}")
    elif parameter.maximum is not None:
        texts.append(f"at most {parameter.maximum}")
    return ", ".join(texts)

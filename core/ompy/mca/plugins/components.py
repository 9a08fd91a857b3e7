"""The components of one registry: which are offered, which are allowed, which can be imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ompy.mca.component import Component
from ompy.mca.enumerators import VERBOSITY
from ompy.mca.errors import ComponentError, UsageError, did_you_mean
from ompy.mca.groups import HOOKS
from ompy.mca.parameter import BASE, Flag, Synonym
from ompy.mca.parameters.base_parameters import IN_TREE_ONLY, version_parameters
from ompy.mca.parameters.settings import LOG_FORMAT
from ompy.mca.parameters.variables import VariableTable, problem_text
from ompy.mca.plugins.component_records import ComponentRecord, State
from ompy.mca.plugins.declarations import name_fault
from ompy.mca.plugins.diversion import Diversion
from ompy.mca.plugins.loading import LoadFailure, load_component, load_target
from ompy.mca.plugins.parts_elsewhere import component_elsewhere
from ompy.mca.reporting import TEXT, Reporter
from ompy.mca.selection import Selection, parse_selection

if TYPE_CHECKING:
    from ompy.mca.groups import Framework


class ComponentTable:
    """Records of all components offered.

    Attributes:
        listener: called with a record at each change of its state, or None.
        hooks: the loaded objects of the framework `hooks`.
        about: what the lines that verbosity asks for are about: job, host, rank.
    """

    def __init__(
        self,
        frameworks: Mapping[str, Framework],
        variables: VariableTable,
        given: Sequence[ComponentRecord] | None,
    ) -> None:
        """Nothing is looked for yet.

        Args:
            frameworks: by name.
            variables: the parameters of loaded components are declared here.
            given: the records there are; None to look for them when that is needed.
        """
        self.listener: Callable[[ComponentRecord], None] | None = None
        self.hooks: dict[ComponentRecord, object] = {}
        self.about: dict[str, object] = {}
        self._frameworks = frameworks
        self._variables = variables
        self._given = given
        self._records: list[ComponentRecord] | None = None
        self._selections: dict[str, Selection] = {}

    @property
    def records(self) -> list[ComponentRecord]:
        """All of them, ours first. The first call may look for them."""
        if self._records is None:
            if self._given is None:
                from ompy.mca.plugins.discovery import scan_entry_points

                found = scan_entry_points(frozenset(self.frameworks))
            else:
                found = list(self._given)
            self._records = found
            self._settle(found)
        return self._records

    @property
    def frameworks(self) -> list[str]:
        """Names of the frameworks that have components."""
        return [name for name, framework in self._frameworks.items() if framework.api is not None]

    def of(self, framework: str) -> list[ComponentRecord]:
        """The records of one framework."""
        return [record for record in self.records if record.framework == framework]

    def candidates(self, framework: str) -> list[ComponentRecord]:
        """The records of what the selection allows, one for each name."""
        out = (State.BLOCKED, State.SHADOWED)
        return [record for record in self.of(framework) if record.state not in out]

    def owners(self, name: str) -> list[ComponentRecord]:
        """The components one of whose parameters is called `name` in full, if there is one."""
        return [
            record
            for record in self.records
            if record.framework != HOOKS.name
            and record.state is not State.SHADOWED
            and name.startswith(
                tuple(f"{record.framework}_{own}_" for own in (record.name, *record.aliases))
            )
        ]

    def names_of_ours(self, records: Sequence[ComponentRecord]) -> list[str] | None:
        """The parameters of components that come with ompy, excluded or not.

        Returns:
            Their full names; None if a stranger's component is among them: that one can only be
            asked if it is wanted.
        """
        names = []
        for record in records:
            if not record.in_tree or record.state is not State.BLOCKED:
                return None
            component = load_target(record.target)
            assert isinstance(component, Component)
            declared = (*component.parameters, *version_parameters(component.version))
            for own in (record.name, *record.aliases):
                names += [f"{record.framework}_{own}_{parameter.name}" for parameter in declared]
        return names

    # Selection

    def selection(self, framework: str) -> Selection:
        """Which of a framework's components the user allows.

        Raises:
            UsageError: the selection cannot be understood.
        """
        if framework not in self._selections:
            value = self._variables.get(framework).value
            try:
                self._selections[framework] = self._by_name(framework, parse_selection(str(value)))
            except ValueError as error:
                setting = self._variables.settings[framework][0]
                raise UsageError(problem_text(setting, str(error))) from None
        return self._selections[framework]

    def _by_name(self, framework: str, selection: Selection) -> Selection:
        """A selection with the names components have instead of their aliases."""
        names: dict[str, str] = {}
        for record in self.of(framework):
            for alias in record.aliases:
                names.setdefault(alias, record.name)
        if names.keys().isdisjoint(selection.names):
            return selection
        known = {record.name for record in self.of(framework)}
        chosen = [n if n in known else names.get(n, n) for n in selection.names]
        return Selection(tuple(dict.fromkeys(chosen)), selection.excludes)

    def missing(self, framework: str) -> list[str]:
        """A problem for each name that is asked for and that no distribution offers.

        Raises:
            UsageError: the selection cannot be understood.
        """
        selection = self.selection(framework)
        if selection.excludes:
            return []
        available = [record.name for record in self.of(framework)]
        aliases = [alias for record in self.of(framework) for alias in record.aliases]
        place = self._variables.get(framework).origin.place
        there_are = f"there are {', '.join(dict.fromkeys(available)) or 'none'}"
        return [
            f"{place}: there is no {framework} component {name}"
            f"{component_elsewhere(framework, name, alone=len(selection.names) == 1)}"
            f"{did_you_mean(name, [*available, *aliases])} ({there_are})"
            for name in selection.names
            if name not in available
        ]

    def is_valid(self, framework: str) -> bool:
        """Whether a framework's selection can be understood."""
        try:
            self.selection(framework)
        except UsageError:
            return False
        return True

    def is_asked_for(self, record: ComponentRecord) -> bool:
        """Whether the user named it as one to use."""
        return self.selection(record.framework).asks_for(record.name)

    def require(self, record: ComponentRecord) -> None:
        """Call this when a component cannot be used.

        Raises:
            ComponentError: the user asked for it by name.
        """
        if self.is_asked_for(record):
            raise self.failure(record)

    def failure(self, record: ComponentRecord, reason: str = "") -> ComponentError:
        """What to tell a user who asked for a component that cannot be used."""
        place = self._variables.get(record.framework).origin.place
        why = reason or record.reason or record.state.value
        return ComponentError(record.full_name, why, place, record.traceback)

    def _settle(self, records: list[ComponentRecord]) -> None:
        """Take out what the selections exclude, what has no proper name and what is there twice."""
        first: dict[str, ComponentRecord] = {}
        for record in records:
            if record.state is not State.FOUND:
                continue
            if self._is_strange(record):
                place = self._variables.get(IN_TREE_ONLY).origin.place
                self.move(record, State.BLOCKED, f"only ompy's own components are wanted ({place})")
            elif not self._allows(record):
                variable = self._variables.get(record.framework)
                how = "excluded by" if self.selection(record.framework).excludes else "not in"
                reason = f"{how} {record.framework} = {variable.text} ({variable.origin.place})"
                self.move(record, State.BLOCKED, reason)
            elif faults := list(filter(None, map(name_fault, (record.name, *record.aliases)))):
                self.move(record, State.INCOMPATIBLE, faults[0])
            elif record.framework != HOOKS.name:  # two packages of hooks may have one name
                winner = first.setdefault(record.full_name, record)
                if winner is not record:
                    reason = f"{winner.offered_by} offers it too and comes first"
                    self.move(record, State.SHADOWED, reason)

    def _is_strange(self, record: ComponentRecord) -> bool:
        """Whether it comes with a package, and the user wants none of those."""
        if record.in_tree:
            return False
        try:
            return bool(self._variables.get(IN_TREE_ONLY).value)
        except UsageError:
            return False  # whoever checks hears of it

    def _allows(self, record: ComponentRecord) -> bool:
        if not self.is_valid(record.framework):
            return True  # whoever checks or opens the framework hears of it
        return self.selection(record.framework).allows(record.name)

    # Import

    def load(self, record: ComponentRecord) -> bool:
        """Import a component unless that was tried before; returns whether it can be used."""
        if record.state is State.FOUND:
            self._load_ours_first(record)
            try:
                with Diversion() as diversion:
                    self._load(record)
            except LoadFailure as failure:
                self.move(record, failure.state, failure.reason, failure.traceback)
            else:
                self.move(record, State.LOADED)
            diversion.remark(record, "its import")
        return record.component is not None or record in self.hooks

    def _load_ours_first(self, record: ComponentRecord) -> None:
        """No name of a parameter that is ours goes to a stranger because it was asked first."""
        if not record.in_tree and record.framework != HOOKS.name:
            for other in self.candidates(record.framework):
                if other.in_tree:
                    self.load(other)

    def _load(self, record: ComponentRecord) -> None:
        if record.framework == HOOKS.name:
            self.hooks[record] = load_target(record.target)
            return
        component = load_component(record, self._frameworks[record.framework])
        self._declare(record, component)
        record.component = component

    def _declare(self, record: ComponentRecord, component: Component) -> None:
        prefix = f"{record.framework}_{record.name}_"
        declared = (*component.parameters, *version_parameters(component.version))
        parameters = {}
        for parameter in declared:
            others = (f"{record.framework}_{alias}_{parameter.name}" for alias in record.aliases)
            synonyms = tuple(Synonym(other, Flag.INTERNAL) for other in others)
            parameters[prefix + parameter.name] = parameter.with_synonyms(synonyms)
        for name, parameter in parameters.items():
            for taken in (name, *(synonym.name for synonym in parameter.synonyms)):
                if self._variables.is_taken(taken):
                    owner = self._variables.owner(taken)
                    reason = f"its parameter {taken} is already one of {owner}"
                    raise LoadFailure(State.INCOMPATIBLE, reason)
        for name, parameter in parameters.items():
            self._variables.declare(name, record.framework, record.name, parameter)

    # Telling

    def move(
        self, record: ComponentRecord, state: State, reason: str = "", traceback: str = ""
    ) -> None:
        """Bring a record to its next state and tell those who want to know."""
        record.move(state, reason, traceback)
        of = f"{record.distribution} {record.version}"
        self.note(record.framework, f"{record.name} {state.value}", reason=reason, of=of)
        if self.listener is not None:
            self.listener(record)

    def note(self, framework: str, step: str, **details: str) -> None:
        """Write a line about a step, if the framework's verbosity asks for it."""
        if self._verbosity(framework) >= VERBOSITY["component"]:
            sys.stderr.write(self.reporter().report_step(framework, step, details))

    def reporter(self) -> Reporter:
        """Makes lines of what is said here, in the form that the user wants."""
        try:
            form = str(self._variables.get(LOG_FORMAT).value)
        except UsageError:
            form = TEXT  # whoever checks hears of it
        return Reporter(form, self.about)

    def _verbosity(self, framework: str) -> int:
        try:
            value = self._variables.get(f"{framework}_{BASE}_verbose").value
        except UsageError:
            return VERBOSITY["error"]  # whoever checks hears of it
        assert isinstance(value, int)
        return value

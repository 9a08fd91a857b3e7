"""The registry: which components there are, what the user set, which of them are in use.

The launcher makes one from the gathered settings, checks it and hands its snapshot to the
ranks; a rank makes its own from that, without looking at installed distributions or files.

Importing this costs a rank little: whatever is slow to import (the scan's
`importlib.metadata`, pydantic, structlog) is imported when it is first needed.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ompy import outputs
from ompy.mca.component import Component, NotAvailable
from ompy.mca.errors import ComponentsFailed, UsageError, did_you_mean
from ompy.mca.groups import HOOKS, MCA
from ompy.mca.parameter import BASE, LAYERS, Parameter, Values, is_known_elsewhere
from ompy.mca.parameters.base_parameters import (
    SHOW_LOAD_ERRORS,
    SUPPRESS_OVERRIDE_WARNING,
    own_parameters,
)
from ompy.mca.parameters.settings import DEFAULT, STRICT_PLUGINS, Origin, Setting
from ompy.mca.parameters.variables import Variable, VariableTable
from ompy.mca.plugins.component_records import WANTING, ComponentRecord, State
from ompy.mca.plugins.components import ComponentTable
from ompy.mca.plugins.diversion import Diversion
from ompy.mca.plugins.loading import summary, traceback_text
from ompy.mca.plugins.parts_elsewhere import parameter_elsewhere
from ompy.mca.reporting import JSON, Reporter
from ompy.mca.selection import LoadErrors, Selection

if TYPE_CHECKING:
    from ompy.mca.groups import Framework

# Ranks of one process share a registry: what one of them used or failed with stays told.
OTHERS_WORD: Final = frozenset({State.SELECTED, State.OPEN_FAILED})
SNAPSHOT_FORMAT: Final = 2  # arbitrary: counts the forms a snapshot has had


class Registry:
    """Components and parameters of one process.

    Attributes:
        frameworks: the catalog's frameworks, `mca` and `hooks`, by name.
    """

    def __init__(
        self,
        catalog: Sequence[Framework],
        settings: Sequence[Setting] = (),
        records: Sequence[ComponentRecord] | None = None,
        *,
        validated: Mapping[str, object] | None = None,
    ) -> None:
        """Declare the frameworks' own parameters; nothing is looked for or imported yet.

        Args:
            catalog: the frameworks.
            settings: best first, as `gather_settings` returns them.
            records: the components there are; None to look for them when that is needed.
            validated: values resolved in another process; `check_settings` trusts them.
        """
        self.frameworks: dict[str, Framework] = {
            framework.name: framework for framework in (MCA, *catalog, HOOKS)
        }
        self._settings = tuple(settings)
        self._variables = VariableTable(settings, validated or {})
        self._components = ComponentTable(self.frameworks, self._variables, records)
        self._checked = validated is not None
        self._opened: dict[str, list[Component]] = {}
        self._to_close: list[ComponentRecord] = []
        # threads of a rank may be the first to ask for a window or a file, at once
        self._changing = _thread.RLock()
        for framework in self.frameworks.values():
            for name, parameter in own_parameters(framework).items():
                self._variables.declare(name, framework.name, BASE, parameter)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """What it was made with, best first."""
        return self._settings

    # Components

    @property
    def records(self) -> list[ComponentRecord]:
        """All components offered, those of ompy first; the first call may look for them."""
        return self._components.records

    def records_of(self, framework: str) -> list[ComponentRecord]:
        """The records of one framework, in the same order."""
        return self._components.of(framework)

    def selection(self, framework: str) -> Selection:
        """Which of a framework's components the user allows.

        Raises:
            UsageError: the selection cannot be understood.
        """
        return self._components.selection(framework)

    def owners(self, name: str) -> list[ComponentRecord]:
        """The components one of whose parameters could be called `name`."""
        return self._components.owners(name)

    def load(self, framework: str) -> list[ComponentRecord]:
        """Import what the selection allows, whatever happens; returns the framework's records."""
        for record in self._components.candidates(framework):
            self._components.load(record)
        return self.records_of(framework)

    def warnings(self) -> list[str]:
        """A sentence for each component that was to be used and failed, or is there twice.

        And for each that can be used and did something odd. Of those the parameter
        `mca_base_component_show_load_errors` asks for.
        """
        return [record.warning for record in self._to_warn_of()]

    def tell_warnings(self, say: Callable[[str], object]) -> None:
        """Hand each warning to `say`, unless the user has been given it: by the launcher, too."""
        for record in self._to_warn_of():
            if record.told != record.warning:
                record.told = record.warning
                say(f"{record.warning}; ompy-info --why {record.full_name} tells more")

    def _to_warn_of(self) -> list[ComponentRecord]:
        wanted = LoadErrors(str(self._variables.get(SHOW_LOAD_ERRORS).value))
        return [record for record in self.records if record.warning and wanted(record)]

    def listen(self, listener: Callable[[ComponentRecord], None]) -> None:
        """Call `listener` with a component's record at each change of its state."""
        self._components.listener = listener

    def reporter(self) -> Reporter:
        """Makes lines of what is said of this process, in the form that the user wants."""
        return self._components.reporter()

    def speak_for(self, **about: object) -> None:
        """From now on what this process says is about these: job, host, rank."""
        self._components.about = about
        made = self.reporter()
        if made.form == JSON:  # a rank that has to say where it is has half a second for that
            import structlog.processors  # noqa: F401
        outputs.speak(made.rendered if made.form == JSON else None)

    # Checking

    def check_settings(self) -> None:
        """See that everything the user set means something.

        Every name is a parameter's, every value is valid, every component asked for by name
        exists and can be imported. Values for components that are excluded, and names for
        strangers' that are, are not checked. Costs nothing when nothing is set.

        With strict plug-ins every component the selections allow is imported.

        Raises:
            ComponentsFailed: nothing is wrong but components that had to be importable.
            UsageError: with all problems there are, those of components included.
        """
        if self._checked:
            return
        problems = list(dict.fromkeys(self._problems()))
        failures = self._intolerable(importing=True) or self._failed_requests()
        if problems:
            raise UsageError(*problems, *failures)
        if failures:
            raise ComponentsFailed(*failures)
        self._checked = True

    def insist(self) -> None:
        """With strict plug-ins: see that no component the selections allow has failed so far.

        What fails when it is opened or put to work is known only after that.

        Raises:
            ComponentsFailed: with all that have, and why.
        """
        failures = self._intolerable()
        if failures:
            raise ComponentsFailed(*failures)

    def _failed_requests(self) -> list[str]:
        """A problem for each component that is asked for by name and cannot be imported."""
        components = self._components
        return [
            str(components.failure(record))
            for framework in components.frameworks
            if framework in self._variables.settings and components.is_valid(framework)
            for record in components.candidates(framework)
            if components.is_asked_for(record) and not components.load(record)
        ]

    def _intolerable(self, *, importing: bool = False) -> list[str]:
        """A problem for each component that strict plug-ins do not tolerate.

        Args:
            importing: import all the selections allow first.
        """
        try:
            strict = self._variables.get(STRICT_PLUGINS)
        except UsageError:
            return []  # told already
        if not strict.value:
            return []
        for framework in self._components.frameworks if importing else ():
            self.load(framework)
        return [
            f"component {record!r}, which {strict.origin.place} does not allow\n"
            f"{record.traceback}".rstrip()
            for record in self.records
            if record.state in WANTING
        ]

    def _problems(self) -> Iterator[str]:
        for framework in self._components.frameworks:
            if framework in self._variables.settings:
                yield from self._selection_problems(framework)
        for name, settings in self._variables.as_read():
            yield from self._setting_problems(name, settings)
        yield from self._exclusion_problems()

    def _selection_problems(self, framework: str) -> Iterator[str]:
        try:
            yield from self._components.missing(framework)
        except UsageError as error:
            yield from error.problems

    def notices(self) -> list[str]:
        """A sentence for each setting that is deprecated, ignored, overridden or without effect."""
        from ompy.mca.parameters.notices import misspelt, notices, without_effect

        suppressed = self._variables.get(SUPPRESS_OVERRIDE_WARNING).value
        found = [
            *notices(self._variables, overridden=not suppressed),
            *without_effect(self._variables, self._components.owners),
            *misspelt(self._variables),
        ]
        return list(dict.fromkeys(found))

    def _exclusion_problems(self) -> Iterator[str]:
        for record in self._components.records if self._variables.settings else ():
            try:
                problem = self._exclusion_problem(record)
            except UsageError:
                continue  # one of the two is no value, which is told already
            if problem:
                yield problem

    def _exclusion_problem(self, record: ComponentRecord) -> str:
        """What is wrong if both parameters of an exclusive pair are set; empty if none are."""
        for pair in record.component.exclusive if record.component is not None else ():
            names = [f"{record.framework}_{record.name}_{name}" for name in pair]
            both = [self._variables.get(name) for name in names]
            if all(variable.origin is not DEFAULT for variable in both):
                places = " and ".join(variable.origin.place for variable in both)
                return f"{places}: only one of {' and '.join(names)} may be set"
        return ""

    def _setting_problems(self, name: str, settings: list[Setting]) -> Iterator[str]:
        if self._is_declared(name):
            for main in self._variables.main_names(name):
                try:
                    self._variables.get(main)
                except UsageError as error:
                    yield from error.problems
            return
        if is_known_elsewhere(name):  # another system's variable, which says nothing to ompy
            settings = [setting for setting in settings if setting.origin.source != "environment"]
            if not settings:
                return
        owners = self._components.owners(name)
        # excluded components are not imported; of ours the names can be asked for all the same
        excluded = [record for record in owners if record.component is None]
        known = self._components.names_of_ours(excluded)
        if known is not None and name not in known:
            near = parameter_elsewhere(name) or did_you_mean(name, known or self._all_names())
            for setting in settings:
                yield f"{setting.origin.place}: there is no parameter {name}{near}"

    def _require_declared(self, name: str) -> None:
        if not self._is_declared(name):
            near = did_you_mean(name, self._all_names())
            raise UsageError(f"there is no parameter {name}{near}")

    def _is_declared(self, name: str) -> bool:
        """Whether there is such a parameter, as far as components can be asked."""
        if name not in self._variables:
            for record in self._components.owners(name):
                self._components.load(record)
        if name not in self._variables:  # it may be a synonym, of a component called otherwise
            for framework in self._components.frameworks:
                ours = name.startswith((f"{framework}_", *LAYERS))
                if ours or is_known_elsewhere(name, framework):
                    self.load(framework)
        return name in self._variables

    def _all_names(self) -> list[str]:
        """Every parameter's name; imports every component that may be imported."""
        for framework in self._components.frameworks:
            self.load(framework)
        return list(self._variables)

    # Parameters

    def values(self, framework: str) -> Values:
        """The values of a framework's own parameters.

        Raises:
            UsageError: a value is not valid.
        """
        prefix = f"{framework}_{BASE}_"
        return Values(
            {
                variable.name.removeprefix(prefix): variable.value
                for variable in self.variables(framework)
                if variable.name.startswith(prefix)
            }
        )

    def value(self, full_name: str) -> object:
        """The value of any parameter; its component is imported if need be.

        Raises:
            UsageError: there is no such parameter, or its value is not valid.
        """
        return self.variable(full_name).value

    def variable(self, full_name: str) -> Variable:
        """A parameter with its value, origin and what it shadowed; raises as `value`."""
        self._require_declared(full_name)
        return self._variables.get(full_name)

    def declaration(self, full_name: str) -> tuple[str, Parameter]:
        """Main name and declaration of a parameter, whether or not its value is valid.

        Raises:
            UsageError: there is no such parameter.
        """
        self._require_declared(full_name)
        return self._variables.main_name(full_name), self._variables.declaration(full_name)

    def candidates(self, full_name: str) -> tuple[list[Setting], list[tuple[Setting, str]]]:
        """What the user set for a parameter under all its names, best first; raises alike.

        Returns:
            The settings that count, of which the first wins, and those that are ignored, each
            with the reason.
        """
        from ompy.mca.parameters.notices import why_ignored

        _, parameter = self.declaration(full_name)
        counted, ignored = self._variables.candidates(full_name)
        return counted, [(lost, why_ignored(lost, parameter.flags)) for lost in ignored]

    def variables(self, framework: str, component: str = BASE) -> list[Variable]:
        """The parameters of a loaded component, or of the framework, as declared."""
        return [self._variables.get(name) for name in self._variables.names(framework, component)]

    def set(self, full_name: str, raw: str) -> Variable:
        """Give a settable parameter a value, as MPI's tool interface does.

        Raises:
            UsageError: there is no such parameter, it cannot be set now, or the value is not
                valid.
        """
        self.variable(full_name)
        return self._variables.set(full_name, raw)

    def is_writeable(self, variable: Variable) -> bool:
        """Whether `set` would take a value for it now."""
        return self._variables.is_writeable(variable)

    # Life cycle

    def open(self, framework: str) -> list[Component]:
        """Import and open what the selection allows. A second call returns the same.

        A component that fails is left out and its record says why.

        Returns:
            The opened components, highest priority first, then ours, then by name.

        Raises:
            UsageError: the selection or a value is not valid.
            ComponentError: the user asked for a component by name and it cannot be used.
        """
        if framework not in self._opened:
            with self._changing:
                if framework not in self._opened:
                    self._open_all(framework)
        return list(self._opened[framework])

    def _open_all(self, framework: str) -> None:
        missing = self._components.missing(framework)
        if missing:
            raise UsageError(*missing)
        candidates = self._components.candidates(framework)
        self._variables.freeze(framework)
        self._components.note(framework, "opening components")
        for record in candidates:
            if self._components.load(record) and record.state is State.LOADED:
                self._open(record)
            if record.state is not State.OPENED:
                self._components.require(record)
        opened = [record for record in self._to_close if record.framework == framework]
        opened.sort(key=self._rank)
        self._opened[framework] = [_loaded(record) for record in opened]

    def select(self, component: Component) -> None:
        """Record that an opened component is in use."""
        record = self._record_of(component)
        with self._changing:
            if record.state is not State.OPEN_FAILED:  # with another rank of this process
                self._components.move(record, State.SELECTED)

    def select_over(self, component: Component, others: Sequence[Component]) -> None:
        """Record that an opened component is in use because of its priority, and others are not."""
        self.select(component)
        for other in others:
            self.pass_over(other, f"{component.name} has the higher priority")

    def pass_over(self, component: Component, reason: str) -> None:
        """Record that an opened component could have been used and another was preferred."""
        record = self._record_of(component)
        with self._changing:
            if record.state not in OTHERS_WORD:
                self._components.move(record, State.NOT_SELECTED, reason)

    def refuse(self, component: Component, reason: str) -> None:
        """Record that an opened component turned out not to be available.

        Raises:
            ComponentError: the user asked for it by name.
        """
        record = self._record_of(component)
        with self._changing:
            if record.state not in OTHERS_WORD:
                self._components.move(record, State.NOT_AVAILABLE, reason)
        if self._components.is_asked_for(record):
            raise self._components.failure(record, reason)

    def is_asked_for(self, component: Component) -> bool:
        """Whether the user named an opened component in a selection."""
        return self._components.is_asked_for(self._record_of(component))

    def is_in_tree(self, component: Component) -> bool:
        """Whether an opened component comes with ompy itself."""
        return self._record_of(component).in_tree

    def fail(self, component: Component, step: str, error: BaseException) -> None:
        """Record that an opened component raised when it was put to work.

        Args:
            component: which.
            step: what it was asked to do, as `init`.
            error: what it raised.

        Raises:
            ComponentError: the user asked for it by name.
        """
        record = self._record_of(component)
        reason = f"{step} raised {summary(error)}"
        with self._changing:
            if record.state is not State.OPEN_FAILED:
                self._components.move(record, State.OPEN_FAILED, reason, traceback_text(error))
        self._components.require(record)

    def close(self) -> None:
        """Close what was opened, the last first. What a component raises is recorded only."""
        while self._to_close:
            record = self._to_close.pop()
            self._components.note(record.framework, f"closing {record.name}")
            _close(record)
        self._opened.clear()

    def _open(self, record: ComponentRecord) -> None:
        component = _loaded(record)
        prefix = f"{record.framework}_{record.name}_"
        names = [parameter.name for parameter in component.parameters]
        values = Values({name: self._variables.get(prefix + name).value for name in names})
        try:
            problem = self._exclusion_problem(record)
            if problem:
                raise NotAvailable(problem)
            with Diversion() as diversion:
                component.open(values)
        except NotAvailable as error:
            state, reason, traceback = State.NOT_AVAILABLE, str(error) or "no reason given", ""
        except (Exception, SystemExit) as error:
            state, reason, traceback = State.OPEN_FAILED, summary(error), traceback_text(error)
        else:
            self._to_close.append(record)
            self._components.move(record, State.OPENED)
            diversion.remark(record, "its open")
            return
        _close(record)  # gives back what a half-way open took
        self._components.move(record, state, reason, traceback)

    def priority(self, framework: str, component: str) -> float:
        """A component's priority in a selection; 0 if it has no such parameter."""
        name = f"{framework}_{component}_priority"
        found = self._variables.get(name).value if name in self._variables else 0
        return found if isinstance(found, int | float) else 0

    def _rank(self, record: ComponentRecord) -> tuple[float, bool, str]:
        return (-self.priority(record.framework, record.name), not record.in_tree, record.name)

    def _record_of(self, component: Component) -> ComponentRecord:
        for record in self._to_close:
            if record.component is component:
                return record
        raise ValueError(f"{component!r} is not open in this registry")

    # Hooks

    def load_hooks(self) -> list[tuple[ComponentRecord, object]]:
        """Import the packages of hooks the selection `hooks` allows; for `ompy.mca.hooks`.

        Raises:
            UsageError: the selection is not valid.
            ComponentError: the user asked for one by name and it cannot be imported.
        """
        missing = self._components.missing(HOOKS.name)
        if missing:
            raise UsageError(*missing)
        for record in self._components.candidates(HOOKS.name):
            if not self._components.load(record):
                self._components.require(record)
        return list(self._components.hooks.items())

    def drop_hooks(self, record: ComponentRecord, reason: str, traceback: str) -> None:
        """Record that a loaded package of hooks is broken."""
        del self._components.hooks[record]
        self._components.move(record, State.BROKEN, reason, traceback)

    def require(self, record: ComponentRecord) -> None:
        """Call this when a component cannot be used.

        Raises:
            ComponentError: the user asked for it by name.
        """
        self._components.require(record)

    # From the launcher to the ranks

    def snapshot(self) -> dict[str, Any]:
        """Everything a rank needs to know, as plain values JSON can carry; checks first.

        Raises:
            UsageError: as `check_settings`.
        """
        self.check_settings()
        return {
            "format": SNAPSHOT_FORMAT,
            "settings": [[name, raw, *origin] for name, raw, origin in self._settings],
            "values": self._variables.changed(),
            "components": [record.to_dict() for record in self.records],
        }

    @classmethod
    def from_snapshot(cls, catalog: Sequence[Framework], snapshot: dict[str, Any]) -> Registry:
        """The registry of a process that the launcher's snapshot was handed to.

        Components are imported and opened anew; what the launcher found out about them from
        metadata and imports holds.

        Raises:
            UsageError: launcher and rank are of different versions of ompy.
        """
        if snapshot.get("format") != SNAPSHOT_FORMAT:
            raise UsageError("the launcher's ompy and this rank's ompy are of different versions")
        settings = [
            Setting(name, raw, Origin(source, detail))
            for name, raw, source, detail in snapshot["settings"]
        ]
        records = [ComponentRecord.from_dict(values) for values in snapshot["components"]]
        return cls(catalog, settings, records, validated=snapshot["values"])


def _loaded(record: ComponentRecord) -> Component:
    assert record.component is not None, f"{record!r} is not loaded"
    return record.component


def _close(record: ComponentRecord) -> None:
    try:
        _loaded(record).close()
    except (Exception, SystemExit) as error:
        record.reason = f"closing it raised {summary(error)}"
        record.traceback = traceback_text(error)

"""ompy's own components that a selection excludes: what they are and what they would be set to.

Open MPI shows the parameters of excluded components too (reference openmpi.md 2.2.5). Ours are
imported into a registry of their own, so that the job's registry still holds what a job would have.
A package's component stays untouched: who excludes it does not want its code to run.
"""

from __future__ import annotations

from ompy.mca.component import Component
from ompy.mca.errors import UsageError
from ompy.mca.groups import HOOKS, MCA
from ompy.mca.parameter import BASE
from ompy.mca.parameters.base_parameters import version_parameters
from ompy.mca.parameters.variables import Variable
from ompy.mca.plugins.component_records import ComponentRecord, State
from ompy.mca.registry import Registry


class ExcludedComponents:
    """Components of ompy that the job's registry has blocked.

    Attributes:
        problems: what is wrong with settings of theirs, which no job looks at.
    """

    def __init__(self, registry: Registry) -> None:
        """Nothing is imported yet.

        Args:
            registry: the job's.
        """
        own = {name for name, framework in registry.frameworks.items() if framework.api is not None}
        own |= {f"{name}_{BASE}_verbose" for name in own}  # what a job tells, it tells once
        catalog = [
            framework
            for name, framework in registry.frameworks.items()
            if name not in (MCA.name, HOOKS.name)
        ]
        records = [
            ComponentRecord.from_dict({**record.to_dict(), "state": State.FOUND.value})
            for record in registry.records
            if record.state is State.BLOCKED and record.in_tree
        ]
        self.problems: list[str] = []
        settings = [one for one in registry.settings if one.name not in own]
        self._registry = Registry(catalog, settings, records)

    def component(self, framework: str, name: str) -> Component | None:
        """The object, or None if it is not ours, not excluded or cannot be imported."""
        for record in self._registry.load(framework):
            if record.name == name:
                return record.component
        return None

    def opened(self, framework: str) -> list[Component]:
        """Those of a framework, opened: they are closed by `close`."""
        return self._registry.open(framework)

    def close(self) -> None:
        """Close what was opened."""
        self._registry.close()

    def variables(self, component: Component) -> list[Variable]:
        """Its parameters; one whose value is wrong is left out and told in `problems`."""
        prefix = f"{component.framework}_{component.name}_"
        found = []
        for parameter in (*component.parameters, *version_parameters(component.version)):
            try:
                found.append(self._registry.variable(prefix + parameter.name))
            except UsageError as error:
                self.problems += error.problems
        return found

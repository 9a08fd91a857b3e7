"""What a framework is to the registry, and the groups of parameters it provides itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.mca.component import ApiVersion
from ompy.mca.parameter import BASE, VERBOSITY, Parameter
from ompy.mca.settings import PARAM_FILES, default_files

if TYPE_CHECKING:
    from typing import Protocol

    class Framework(Protocol):
        """What a catalog says about one framework."""

        @property
        def name(self) -> str:
            """As in the entry-point group `ompy.NAME`."""

        @property
        def help(self) -> str:
            """What its components do."""

        @property
        def api(self) -> ApiVersion | None:
            """Version of its contract; None when it has no components."""

        @property
        def parameters(self) -> tuple[Parameter, ...]:
            """Of the framework itself."""


class BuiltinGroup(NamedTuple):
    """A framework the registry itself provides."""

    name: str
    help: str
    api: ApiVersion | None
    parameters: tuple[Parameter, ...]


MCA: Final = BuiltinGroup(
    "mca",
    "Where parameters come from.",
    None,
    (
        Parameter(
            PARAM_FILES.removeprefix(f"mca_{BASE}_"),
            "string",
            ",".join(default_files("~")),
            "Parameter files, separated by commas; the left-most wins. The word none: no files. "
            "To be set on the command line or in the environment.",
            level=2,  # reference openmpi.md 1.10
        ),
    ),
)
HOOKS: Final = BuiltinGroup(
    "hooks",
    "Told about the life of jobs, ranks and components.",
    (1, 0),  # arbitrary: the first version
    (),
)


def own_parameters(framework: Framework) -> dict[str, Parameter]:
    """A framework's own parameters by full name.

    One with components also has its selection, called like the framework, and its verbosity.
    """
    name = framework.name
    parameters = {}
    if framework.api is not None:
        parameters[name] = Parameter(
            name,
            "string",
            "",
            f"Components of {name} that may be used: a,b for only these, ^a,b for all but these; "
            "empty for all.",
            level=2,  # reference openmpi.md 1.3
        )
        parameters[f"{name}_{BASE}_verbose"] = Parameter(
            "verbose",
            "int",
            VERBOSITY["error"],
            f"How much {name} tells on standard error; from component on, a line for each "
            "component that is imported, opened or closed.",
            level=8,  # reference openmpi.md 1.3
            minimum=VERBOSITY["none"],
            maximum=VERBOSITY["max"],
            words=VERBOSITY,
            clamp=True,
        )
    parameters |= {f"{name}_{BASE}_{own.name}": own for own in framework.parameters}
    return parameters

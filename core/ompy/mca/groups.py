"""What a framework is to the registry, and the groups of parameters it provides itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.mca.component import ApiVersion, Component
from ompy.mca.parameter import Parameter
from ompy.mca.parameters.base_parameters import MCA_PARAMETERS

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

        @property
        def contracts(self) -> tuple[type[Component], ...]:
            """Every component of it derives from one of these classes."""


class FrameworkInfo(NamedTuple):
    """One framework.

    Attributes:
        name: as in `--mca NAME value` and in the entry-point group `ompy.NAME`.
        help: what its components do.
        api: version of its contract; None for a group of parameters without components.
        parameters: of the framework itself, called `NAME_base_<parameter>`.
        contracts: every component of it derives from one of these classes.
    """

    name: str
    help: str
    api: ApiVersion | None
    parameters: tuple[Parameter, ...] = ()
    contracts: tuple[type[Component], ...] = (Component,)


MCA: Final = FrameworkInfo(
    "mca", "Where parameters and components come from.", None, MCA_PARAMETERS
)
HOOKS: Final = FrameworkInfo(
    "hooks",
    "Told about the life of jobs, ranks and components.",
    (1, 0),  # arbitrary: the first version
)

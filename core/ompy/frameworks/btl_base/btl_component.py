"""What a BTL component is to the registry, and the parameters that all of them have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ompy.frameworks.btl_base.btl_limits import COMMON
from ompy.frameworks.capabilities import Capabilities
from ompy.mca.component import Component

if TYPE_CHECKING:
    from ompy.frameworks.btl import BtlModule
    from ompy.frameworks.context import RankContext
    from ompy.frameworks.proc import Proc


class BtlComponent(Component):
    """Base of BTL components.

    Attributes:
        capabilities: what its modules promise.
        emulated: it models hardware that is not there, and is used only when asked for by name.
        on_request: it is real, and used only when asked for by name all the same.
        grows: the modules reach processes of other worlds too (`runtime/README.md`): those of
            `init` do if nothing in them was made for a number of ranks.
    """

    framework: ClassVar[str] = "btl"
    capabilities: ClassVar[Capabilities]
    emulated: ClassVar[bool] = False
    on_request: ClassVar[bool] = False
    grows: ClassVar[bool] = False

    def init(self, context: RankContext) -> list[BtlModule]:
        """Make the modules for one rank and publish their addresses.

        Returns:
            The modules; none when this component has nobody to reach in this job.

        Raises:
            NotAvailable: there is nothing this component could use; the reason is kept.
        """
        raise NotImplementedError

    def bridge(self, context: RankContext, others: Sequence[Proc]) -> list[BtlModule]:
        """Make the modules that reach the processes of one other world, if they are special ones.

        Both sides do, when they first have a communicator in common, in any order and without
        waiting for each other.

        Args:
            context: the rank.
            others: all processes of that world.
        """
        return []


def apply_common(module: BtlModule, values: object) -> None:
    """Set a module's attributes from the values of `common_parameters`.

    The module's `flags` say what it can do until then; the parameter leaves some of them.
    """
    for name, *_ in COMMON:
        setattr(module, name, getattr(values, name, getattr(module, name)))
    module.flags &= getattr(values, "flags", module.flags)

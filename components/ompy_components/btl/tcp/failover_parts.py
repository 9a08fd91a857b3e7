"""The parts that a module has only when it fails over, and the endpoints that are made of them.

When paths are doubted, given up and taken back is the business of
`ompy.frameworks.paths.path_keeper`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy_components.btl.tcp.acknowledging import Acknowledger, FailoverEndpoint
from ompy_components.btl.tcp.failover_path import FailoverPath
from ompy_components.btl.tcp.link import Link
from ompy_components.btl.tcp.pacing import Pacing

if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy.frameworks.btl import BtlModule
    from ompy.frameworks.proc import Proc
    from ompy.mca.parameter import Values

    from ompy_components.btl.tcp.connecting import Connector
    from ompy_components.btl.tcp.resources import Resources

US: Final = 1_000  # ns; Linux counts so


class FailoverParts:
    """Of one module."""

    __slots__ = ("_acknowledger", "_engine", "_link", "_module", "_pacing", "_resources")

    def __init__(
        self, module: BtlModule, resources: Resources, values: Values, down: Callable[[], None]
    ) -> None:
        """Begin to listen to the link, which calls `down` when it is.

        Args:
            module: whose endpoints are made.
            resources: that they share.
            values: of the parameters.
            down: every path over the interface has failed.
        """
        context, interface = module.context, resources.interface
        self._module = module
        self._resources = resources
        self._engine = context.engine
        self._link = Link(context.network, interface, resources.sockets.readiness, down)
        unsent_max = 0 if interface.loopback else values.unsent_max
        kind, btls = type(module), context.btls
        self._pacing = Pacing(
            values.put_chunk, unsent_max, lambda: sum(isinstance(b, kind) for b in btls) > 1
        )
        self._acknowledger = Acknowledger(self._engine, values.ack_delay_us * US, values.ack_bytes)
        self._engine.add_poller(self._acknowledger)

    def endpoint(self, proc: Proc, connector: Connector) -> tuple[FailoverEndpoint, FailoverPath]:
        """A peer that acknowledges, and what makes its connections."""
        made = FailoverEndpoint(self._module, proc, self._resources, self._acknowledger)
        made.remote.pacing = self._pacing
        made.remote.answered = True
        return made, FailoverPath(made, connector, self._pacing, self._link)

    def close(self) -> None:
        """Every endpoint is closed."""
        self._link.close()
        self._engine.remove_poller(self._acknowledger)

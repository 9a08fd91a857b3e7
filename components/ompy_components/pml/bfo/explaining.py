"""Why a message takes the protocol it takes: ob1's rule, with the parameters of bfo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from ompy.frameworks.bml import BmlEndpoint
from ompy.frameworks.explanation import Limit
from ompy.frameworks.paths.path_watch import MS

from ompy_components.pml.ob1.diagnosis.explaining import Explaining
from ompy_components.pml.ob1.selection import RDMA_DIRECT_PUT, RDMA_PIPELINE, Protocol

if TYPE_CHECKING:
    from ompy_components.pml.bfo.module import Bfo


class BfoExplaining(Explaining):
    """Explains for one peer, as ob1's; pieces of a put are short in time here."""

    pml: ClassVar[str] = "bfo"

    def __init__(self, bfo: Bfo, endpoint: BmlEndpoint) -> None:
        super().__init__(bfo, endpoint)
        self._bfo = bfo

    def _rdma_limits(self, protocol: Protocol) -> Iterator[Limit]:
        yield from super()._rdma_limits(protocol)
        aim = self._bfo.receiving.puts.paces.aim
        several = self._bfo.rails.several(self._endpoint.proc)
        if protocol in {RDMA_DIRECT_PUT, RDMA_PIPELINE} and aim and several:
            yield Limit(
                f"one piece of a put: as much as its rail brings in {aim // MS} ms, less at first",
                (self._own("piece_ms"), self._own("piece_least")),
            )

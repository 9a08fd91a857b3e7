"""The identity of the conduits `gemini` and `aries`: one source, two of everything that differs."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.conduit import API, Conduit, ConduitComponent, ThreadMode
from ompy.frameworks.context import RankContext
from ompy.mca.component import NotAvailable
from ompy.mca.parameter import Parameter

from ompy_components.conduit.gni.parameters import contradiction, parameters


class _GniConduitComponent(ConduitComponent):
    """What the two have in common; the NIC's generation has the conduit's name."""

    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API

    def init(self, context: RankContext, mode: ThreadMode) -> Conduit:
        """Bootstrap the conduit of one rank, with all others."""
        problem = contradiction(self.values)
        if problem:
            raise NotAvailable(problem)
        from ompy_components.conduit.gni.attaching import find_nic
        from ompy_components.conduit.gni.conduit import GniConduit

        nic = find_nic(context, self.name)
        return GniConduit(self.name, context, mode, nic, self.values)


class GeminiComponent(_GniConduitComponent):
    """GASNet over an emulated Gemini."""

    name: ClassVar[str] = "gemini"
    parameters: ClassVar[tuple[Parameter, ...]] = parameters("gemini")


class AriesComponent(_GniConduitComponent):
    """GASNet over an emulated Aries."""

    name: ClassVar[str] = "aries"
    parameters: ClassVar[tuple[Parameter, ...]] = parameters("aries")


GEMINI = GeminiComponent()
ARIES = AriesComponent()

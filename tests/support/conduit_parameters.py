"""The conduits' parameters, resolved as a job resolves them, without the conduits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from ompy.frameworks import conduit
from ompy.mca.groups import FrameworkInfo
from ompy.mca.parameter import Parameter, Values
from ompy.mca.parameters.settings import gather_settings
from ompy.mca.plugins.component_records import ComponentRecord
from ompy.mca.registry import Registry
from ompy_components.conduit.gni.parameters import parameters

CATALOG = (
    FrameworkInfo("conduit", "Conduits.", conduit.API, contracts=(conduit.ConduitComponent,)),
    FrameworkInfo("wire", "Something else.", (1, 0)),
)


class _Gemini(conduit.ConduitComponent):
    name: ClassVar[str] = "gemini"
    version: ClassVar[str] = "0"
    api: ClassVar[tuple[int, int]] = conduit.API
    parameters: ClassVar[tuple[Parameter, ...]] = parameters("gemini")


class _Aries(_Gemini):
    name: ClassVar[str] = "aries"
    parameters: ClassVar[tuple[Parameter, ...]] = parameters("aries")


GEMINI, ARIES = _Gemini(), _Aries()
NAMES = ("gemini", "aries")


def registry(
    environ: Mapping[str, str] | None = None, command_line: Sequence[tuple[str, str]] = ()
) -> Registry:
    """What a user's settings make of the parameters."""
    records = [
        ComponentRecord("conduit", name, "ompy", "0", f"{__name__}:{name.upper()}")
        for name in NAMES
    ]
    return Registry(CATALOG, gather_settings(command_line, environ or {}, files=[]), records)


def values(name: str = "gemini", **changed: object) -> Values:
    """One conduit's values at their defaults, but for those given."""
    return Values({known.name: known.default for known in parameters(name)} | changed)

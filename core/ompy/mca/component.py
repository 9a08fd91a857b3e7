"""What every component is: an identity, parameters, a life cycle."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from ompy.mca.parameter import Parameter, Values
from ompy.mca.performance import PerformanceVariable

ApiVersion = tuple[int, int]

MCA_VERSION: Final = "2.1.0"  # reference openmpi.md 0.6: the component model this one follows


class NotAvailable(Exception):
    """A component cannot be used here and now; the text says why. Not an error."""


class Component:
    """Base of every component object that an entry point names.

    The object is cheap: importing its module reads no file, opens nothing and imports no
    heavy library. The registry calls `open` before anything else and `close` at the end.

    Attributes:
        framework: the framework it belongs to (`btl`, `pml`, ...).
        name: unique in the framework; equal to the entry point's name.
        version: of the component.
        api: version of the framework's contract it was written for. The host accepts the
            same major and a minor not newer than its own.
        parameters: what the user may set. `priority` is one of them in every framework
            that selects by priority.
        pvars: its performance variables; a BTL's `counters`, a PML's `counted` have the values.
        exclusive: pairs of its parameters of which the user may set one only
            (reference openmpi.md 1.6.6).
        rank_modules: modules that a rank imports when the component is put to work. Those of
            components that come with ompy are imported before a rank is forked, once for all of
            them; importing them does nothing else.
        wire_formats: where it says what it sends over the wire, as `module:attribute`: a sequence
            of `ompy.frameworks.wire_formats`. Tools import it, no rank does.
        expected_failures: tests of the conformance kit known to fail, each with the reason.
    """

    framework: ClassVar[str]
    name: ClassVar[str]
    version: ClassVar[str]
    api: ClassVar[ApiVersion]
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    pvars: ClassVar[tuple[PerformanceVariable, ...]] = ()
    exclusive: ClassVar[tuple[tuple[str, str], ...]] = ()
    rank_modules: ClassVar[tuple[str, ...]] = ()
    wire_formats: ClassVar[str] = ""
    expected_failures: ClassVar[Mapping[str, str]] = MappingProxyType({})

    values: Values

    def open(self, values: Values) -> None:
        """Get ready with the resolved parameters.

        Raises:
            NotAvailable: it cannot be used here; it is left out and the reason is kept.
        """
        self.values = values

    def close(self) -> None:
        """Give back what `open` took: at the end, selected or not, and when `open` failed."""

"""libfabric's identity and parameters."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Final

from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import API, Nic, NicComponent, interfaces_for
from ompy.frameworks.nic.datagram import DatagramNic
from ompy.frameworks.nic.fabric import FabricNic
from ompy.mca.component import NotAvailable
from ompy.mca.parameter import Parameter, Values

LOADER_CACHE: Final = Path("/etc/ld.so.cache")  # glibc: names and places of all libraries


class LibfabricComponent(NicComponent):
    """The real libfabric: its reliable providers as one device, its `udp` as one per interface."""

    name: ClassVar[str] = "libfabric"
    kinds: ClassVar[tuple[type[Nic], ...]] = (FabricNic, DatagramNic)
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "library",
            "string",
            "libfabric.so.1",
            "File of the library, or a name that the system's loader finds.",
            level=3,
        ),
        Parameter(
            "delivery_complete",
            "string",
            "shm,tcp;ofi_rxm,udp;ofi_rxd,sockets",  # reference ofi.md C4: measured with 1.17
            "Providers that are known to complete a write only when the peer's memory has it, if "
            "asked to; separated by commas.",
            level=6,
        ),
        Parameter(
            "exposed",
            "string",
            "udp;ofi_rxd,sockets",  # measured with libfabric 1.17: tools/sweep strangers
            "Providers whose processes a stranger's packets can end or stop; separated by commas. "
            "btl/ofi takes them only where btl_ofi_provider_include names them, and warns then.",
            level=5,
        ),
        Parameter(
            "wait",
            "bool",
            True,
            "Whether a rank may sleep until a descriptor of the provider's wakes it. Where there "
            "is none it looks again and again.",
            level=5,
        ),
        Parameter(
            "compiled",
            "bool",
            True,
            "Whether the calls that post work and read queues are the compiled ones, where the "
            "installation has them (wheels made with a C compiler do).",
            level=9,
        ),
        Parameter(
            "sockets_waittime",
            "int",
            0,  # reference ofi.md C2: 4 ms become 65 us
            "How long the progress thread of the provider `sockets` sleeps, unless the variable "
            "FI_SOCKETS_PE_WAITTIME says so; -1 leaves it to the provider.",
            level=6,
            unit="ms",
            minimum=-1,
        ),
    )

    def open(self, values: Values) -> None:
        """Find out cheaply whether there is anything to load.

        Loading the library takes long, and is for those who ask for a device; to look for what is
        not there is short.

        Raises:
            NotAvailable: cffi or the library is missing; the text says how to get it.
        """
        super().open(values)
        if find_spec("_cffi_backend") is None or not _listed(values.library):
            from ompy_components.nic.libfabric.library import load_library

            load_library(values.library, values.sockets_waittime, values.compiled)

    def devices(self, context: RankContext) -> list[Nic]:
        """The library's providers; loopback alone when the whole job is on this host.

        Raises:
            NotAvailable: there is no such library, or this is a virtual world.
        """
        if context.network.virtual:
            raise NotAvailable("a virtual world has no libfabric")
        from ompy_components.nic.libfabric.library import load_library

        library = load_library(
            self.values.library, self.values.sockets_waittime, self.values.compiled
        )
        from ompy_components.nic.libfabric.device import make_devices

        return make_devices(context, library, interfaces_for(context), self.values)


def _listed(library: str) -> bool:
    """Whether the system's loader has a library of that name, or there is such a file."""
    if "/" in library:
        return Path(library).exists()
    try:
        return b"/%s\0" % library.encode() in LOADER_CACHE.read_bytes()
    except OSError:
        return False


COMPONENT = LibfabricComponent()

"""The numbers of a device's clock as MCA parameters: declared once, with where each comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ompy.frameworks.nic.clock import Cost
from ompy.mca.parameter import Parameter
from ompy.net.base import Link

SWITCH: Final = "clock"
LEVEL: Final = 7  # arbitrary: as other numbers of a device that nobody has to know


@dataclass(frozen=True, slots=True)
class Timing:
    """A piece of work of a device, and what it takes by default.

    Attributes:
        name: what the parameters are called after: `fma_put` has `fma_put_ns`, `fma_put_rate`, ...
        what: the work, in a few words: "a put by the processor's stores".
        takes: its cost, or the device's link.
        source: of the numbers: a publication, or how they follow from one.
    """

    name: str
    what: str
    takes: Cost | Link
    source: str


def clock_parameters(*timings: Timing) -> tuple[Parameter, ...]:
    """The switch of a clock, and a parameter for each number but 0."""
    switch = Parameter(
        SWITCH,
        "bool",
        True,
        "In simulated worlds, have what the device does take the time its clock says; without, it "
        "takes none.",
        level=LEVEL,
    )
    return (switch, *(one for timing in timings for one in _numbers(timing)))


def _numbers(timing: Timing) -> Iterator[Parameter]:
    for field, (suffix, unit, said) in _FIELDS[type(timing.takes)].items():
        default = getattr(timing.takes, field)
        if default or field in _ALWAYS:
            text = f"In simulated worlds, {timing.what}: {said} ({timing.source})."
            yield Parameter(
                timing.name + suffix, "int", default, text, level=LEVEL, unit=unit, minimum=0
            )


def timed(values: Mapping[str, Any], timings: Sequence[Timing]) -> dict[str, Any]:
    """What each piece of work takes as the parameters say, by its name."""
    return {timing.name: _taken(values, timing) for timing in timings}


def _taken(values: Mapping[str, Any], timing: Timing) -> Cost | Link:
    fields = {
        field: values[timing.name + suffix]
        for field, (suffix, _, _) in _FIELDS[type(timing.takes)].items()
        if timing.name + suffix in values
    }
    return type(timing.takes)(**fields)


_ALWAYS: Final = ("fixed", "latency", "bandwidth")
_FIELDS: Final[Mapping[type, Mapping[str, tuple[str, str, str]]]] = {
    Cost: {
        "fixed": ("_ns", "ns", "what it takes, whatever its size"),
        "rate": ("_rate", "MB/s", "how fast it passes its bytes"),
        "per_packet": ("_packet_ns", "ns", "what each packet takes"),
        "packet": ("_packet", "bytes", "bytes of a packet"),
    },
    Link: {
        "latency": ("_ns", "ns", "from end to end"),
        "bandwidth": ("_mbits", "Mbit/s", "how fast it is"),
        "buffer": ("_buffer", "bytes", "bytes that wait for the receiver's port at most"),
        "per_packet": ("_packet_ns", "ns", "what the port takes for each packet at least"),
    },
}

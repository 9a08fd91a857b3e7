"""bfo's fragments, for dissectors: ob1's, restarted ones, another FIN, and those of the dance.

Nothing on the wire says which of the two PMLs a job has. They differ where a FIN is longer, and
where a flag says that a message is restarted, which ob1 never sets.
"""

from __future__ import annotations

from typing import Final

from ompy.data.header_layout import HeaderLayout
from ompy.frameworks.wire_formats import (
    Fragments,
    Payload,
    Show,
    Sized,
    Steps,
    Switch,
    WireFormat,
)

from ompy_components.pml.bfo import headers
from ompy_components.pml.ob1 import headers as ob1
from ompy_components.pml.ob1.wire import FIN, FLAGS, shown

_RESTARTED: Final = {**FLAGS, "restart": headers.FLAG_RESTART}
_OF_FIN: Final = {"resent": headers.FLAG_RESENT, "lost": headers.FLAG_LOST}
_NAMES: Final = {**ob1.NAMES, **headers.RESTART_NAMES}


def _first(layout: HeaderLayout) -> Steps:
    """A RNDV or RGET, restarted or not."""
    extra = {headers.FLAG_RESTART: (Show(headers.EXTRA_LAYOUT),)}
    restarted = Switch(f"{layout.name}.flags", extra, mask=headers.FLAG_RESTART)
    return (shown(layout, _RESTARTED), restarted, Payload())


_FIN: Final[Steps] = (Show(headers.FIN_LAYOUT, {"type": _NAMES}, {"flags": _OF_FIN}), Payload())
_STEP: Final[Steps] = (Show(headers.DANCE_LAYOUT, {"type": _NAMES}), Payload())
WIRE: Final[tuple[WireFormat, ...]] = (
    Fragments(
        "pml.bfo",
        {
            ob1.RNDV: _first(ob1.RNDV_LAYOUT),
            ob1.RGET: _first(ob1.RGET_LAYOUT),
            ob1.FIN: (Sized({ob1.FIN_LAYOUT.size: FIN}, _FIN),),
            **dict.fromkeys(headers.RESTART_NAMES, _STEP),
        },
        includes=("pml.ob1",),
    ),
)

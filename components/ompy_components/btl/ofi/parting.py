"""How a module parts from its peers: BYE behind everything, until they have taken it all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy_components.btl.ofi.headers import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ompy.engine.base import Engine

    from ompy_components.btl.ofi.attention import Attention
    from ompy_components.btl.ofi.endpoint import OfiEndpoint
    from ompy_components.btl.ofi.failures.device import Device
    from ompy_components.btl.ofi.sending import SendEngine

LINGER: Final = 1_000_000_000  # ns; arbitrary: how long the end waits for BYEs


def part_from_peers(
    engine: Engine,
    peers: Sequence[OfiEndpoint],
    sending: SendEngine,
    device: Device,
    attention: Attention,
) -> None:
    """Say BYE to all who would take a connection that closes for a broken path, and wait.

    Args:
        engine: of the rank.
        peers: all there are.
        sending: says it.
        device: need not be waited for when it has failed.
        attention: is told when something is under way.
    """
    wait_until = engine.wait_until
    talked = [one for one in peers if one.talked()]
    wait_until(lambda: _have_parted(sending, talked, attention))
    wait_until(lambda: all(one.left() or not one.usable() for one in talked), LINGER)
    wait_until(lambda: not sending.outstanding or bool(device.dead), LINGER)


def _have_parted(sending: SendEngine, talked: Sequence[OfiEndpoint], attention: Attention) -> bool:
    open_ends = [endpoint for endpoint in talked if not _part(sending, endpoint, attention)]
    return not open_ends


def _part(sending: SendEngine, endpoint: OfiEndpoint, attention: Attention) -> bool:
    """Say BYE behind everything; whether the peer has taken it all, or never will."""
    if not endpoint.usable():
        return True
    if not endpoint.parted:
        endpoint.part(sending.say(endpoint, Kind.BYE))
        attention.watch_over()
        return False
    return not endpoint.window.open()

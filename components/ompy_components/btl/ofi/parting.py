"""How a module parts from its peers: BYE behind everything, until they have taken it all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy_components.btl.ofi.headers import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ompy_components.btl.ofi.endpoint import OfiEndpoint
    from ompy_components.btl.ofi.module import OfiModule

LINGER: Final = 1_000_000_000  # ns; arbitrary: how long the end waits for farewells


def part_from_peers(module: OfiModule) -> None:
    """Say BYE to all who would take a connection that closes for a broken path, and wait."""
    wait_until = module.context.engine.wait_until
    talked = [one for one in module.peers() if one.talked()]
    wait_until(lambda: _have_parted(module, talked))
    wait_until(lambda: all(one.left() or not one.usable() for one in talked), LINGER)
    wait_until(lambda: not module.sending.outstanding or bool(module.dead), LINGER)


def _have_parted(module: OfiModule, talked: Sequence[OfiEndpoint]) -> bool:
    open_ends = [endpoint for endpoint in talked if not _part(module, endpoint)]
    return not open_ends


def _part(module: OfiModule, endpoint: OfiEndpoint) -> bool:
    """Say BYE behind everything; whether the peer has taken it all, or never will."""
    if not endpoint.usable():
        return True
    if not endpoint.parted:
        endpoint.parted = module.sending.say(endpoint, Kind.BYE)
        module.watch_over()
        return False
    return not endpoint.window.open()

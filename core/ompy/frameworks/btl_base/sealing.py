"""How connections between ranks are sealed: what `btl_base_seal` says of a peer.

The seal itself is in `ompy.net`: agreed on in the handshake, put around the stream by
`proving.sealed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.mca.errors import UsageError

if TYPE_CHECKING:
    from ompy.frameworks.context import RankContext
    from ompy.frameworks.proc import Proc
    from ompy.mca.registry import Registry
    from ompy.net.seals.handshake import SealLevel

PARAMETER: Final = "btl_base_seal"
AUTO: Final = 3  # arbitrary: none of the levels
POLICIES: Final = {"none": 0, "mac": 1, "encrypt": 2, "auto": AUTO}  # `SealLevel`, and what chooses


def insist_on_seal(registry: Registry) -> None:
    """See that what `btl_base_seal` asks for can be done on this host.

    Raises:
        UsageError: it wants a package that is not here.
    """
    if registry.value(PARAMETER) != POLICIES["encrypt"]:
        return
    try:
        from cryptography.hazmat.primitives.ciphers import aead  # noqa: F401 - is it there?
    except ImportError as problem:
        raise UsageError(
            f"{PARAMETER} is encrypt ({registry.variable(PARAMETER).origin.place}), which needs "
            f"the package cryptography, and that cannot be used on this host ({problem}): "
            "pip install 'ompy[encrypt]' on every host, or choose mac"
        ) from None


def seal_level(context: RankContext, peer: Proc) -> SealLevel:
    """The seal of connections to a peer.

    By default between hosts only: what two processes of one host say to each other passes through
    its kernel alone.
    """
    from ompy.net.seals.handshake import (
        SealLevel,  # late: the catalog of parameters needs the rest only
    )

    if context.seal == AUTO:
        elsewhere = peer.node != context.me.node
        return SealLevel.MAC if elsewhere else SealLevel.NONE
    return SealLevel(context.seal)

"""What a poll raises is GASNet's own error out of every call that polls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ompy.data.errors import ERR_OTHER, MPIError
from ompy.engine.base import Poller
from ompy.gasnet import DT_I64, OP_ADD, TEAM_ALL, Gasnet, ResourceError

from tests.support.gasnet_collectives import PLAIN
from tests.support.gasnet_worlds import CONDUITS, run


class Lost(Poller):
    """A poller that has lost something."""

    def poll(self) -> int:
        raise MPIError(ERR_OTHER, "it is lost")

    def arm(self) -> bool:
        return True


CALLS: dict[str, Callable[[Gasnet, Any], object]] = {
    "am_poll": lambda gasnet, _: gasnet.am_poll(),
    "am_request": lambda gasnet, _: gasnet.am_request_short(1, 128),
    "block_until": lambda gasnet, _: gasnet.block_until(lambda: False),
    "barrier_try": lambda gasnet, _: gasnet.barrier_try(),
    "barrier_wait": lambda gasnet, _: gasnet.barrier_wait(),
    "try_syncnb": lambda gasnet, handle: gasnet.try_syncnb(handle),
    "try_syncnb_all": lambda gasnet, handle: gasnet.try_syncnb_all([handle]),
    "try_syncnb_some": lambda gasnet, handle: gasnet.try_syncnb_some([handle]),
    "wait_syncnb": lambda gasnet, handle: gasnet.wait_syncnb(handle),
    "try_syncnbi_all": lambda gasnet, _: gasnet.try_syncnbi_all(),
    "wait_syncnbi_all": lambda gasnet, _: gasnet.wait_syncnbi_all(),
    "atomic": lambda gasnet, _: gasnet.ad_create(DT_I64, OP_ADD).op(1, 0, OP_ADD, 1),
    "coll_barrier": lambda gasnet, _: gasnet.coll_barrier(TEAM_ALL),
    "coll_broadcast": lambda gasnet, _: gasnet.coll_broadcast(
        TEAM_ALL, bytearray(1), 1, None, 1, PLAIN
    ),
    "coll_try_sync": lambda gasnet, _: gasnet.coll_try_sync(
        gasnet.coll_broadcast_nb(TEAM_ALL, bytearray(1), 1, None, 1, PLAIN)
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_loss_is_gasnets_error(name: str) -> None:
    def program(gasnet: Gasnet) -> None:
        gasnet.init()
        gasnet.attach([print])
        gasnet.coll_init()
        gasnet.barrier()
        if gasnet.mynode() == 0:
            handle = gasnet.put_nb_bulk(1, 0, bytes(100))
            gasnet.put_nbi_bulk(1, 200, bytes(100))
            gasnet.barrier_notify()
            lost = Lost()
            gasnet._engine.add_poller(lost)
            with pytest.raises(ResourceError, match="it is lost"):
                CALLS[name](gasnet, handle)
            gasnet._engine.remove_poller(lost)
            gasnet.barrier_wait()
        else:
            gasnet.barrier()
        gasnet.barrier()

    run(CONDUITS["aries, hosts"], 2, program)

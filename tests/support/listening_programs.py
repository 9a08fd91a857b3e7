"""Programs of real ranks: where all processes of their job listen."""

from __future__ import annotations

import os
from typing import Any

from ompy.frameworks.paths.path_watch import PathVerdict
from ompy.runtime.ranks.process import RankProcess

from tests.support.listening import ancestors, listening
from tests.support.worlds import find

S = 1_000_000_000


def listeners(process: RankProcess) -> Any:
    """Sockets of this rank, its agent and its launcher, when it talks and its paths are tried."""
    find("tests.sim.p2p.programs:growing")(process)
    context = process.context
    watch = context.paths.watch(
        context.procs[1 - context.rank], "127.0.0.1", "127.0.0.1", "lo", lambda: None
    )
    asked = context.engine.wait_until(lambda: watch.verdict is PathVerdict.ALIVE, 60 * S)
    assert asked, "the agent does not answer itself"
    own = listening([os.getpid()])
    above = listening(ancestors(os.getppid(), int(os.environ["LISTENING_TEST"])))
    watch.end()
    return [sorted(own), sorted(above)]

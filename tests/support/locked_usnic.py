"""Threads over usnic, with an eye on the rank's lock: interpreted ranks of real processes only."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ompy.runtime.ranks.process import RankProcess
from ompy_components.btl.usnic.connectivity.checker import Connectivity
from ompy_components.btl.usnic.module import UsnicModule
from ompy_components.btl.usnic.receive_engine import ReceiveEngine
from ompy_components.btl.usnic.reliability.machine import Reliability
from ompy_components.btl.usnic.send_engine import SendEngine

from tests.sim.mpi import threads as programs

ROUNDS = 4  # each kind of call once

WATCHED = (
    (UsnicModule, "alloc"),
    (UsnicModule, "send"),
    (UsnicModule, "poll"),
    (SendEngine, "check_ready"),
    (SendEngine, "_first"),
    (ReceiveEngine, "_handle"),
    (Reliability, "acknowledge"),
    (Connectivity, "_send"),
)


def under_the_lock(process: RankProcess) -> None:
    """Whoever is in one of these has the rank's lock, and every thread is in some of them."""
    lock: Any = process.context.engine.lock
    bare: list[str] = []
    called: set[str] = set()
    threads: set[int] = set()

    def watch(owner: type, name: str) -> Callable[[], None]:
        plain = getattr(owner, name)

        def watched(*args: Any, **options: Any) -> Any:
            called.add(name)
            threads.add(threading.get_ident())
            if not lock._is_owned():
                bare.append(name)
            return plain(*args, **options)

        setattr(owner, name, watched)
        return lambda: setattr(owner, name, plain)

    restores = [watch(owner, name) for owner, name in WATCHED]
    try:
        programs.ROUNDS = ROUNDS
        programs.pairs_of_threads(process)
    finally:
        for restore in restores:
            restore()
    assert bare == []
    assert called == {name for _, name in WATCHED}
    assert len(threads) == programs.THREADS + 1

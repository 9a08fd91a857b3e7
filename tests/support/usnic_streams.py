"""One rank sends large fragments to another as fast as usnic lets it, in a virtual world."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ompy.conformance.btl.driver import Driver
from ompy.conformance.btl.suite import Worlds
from ompy.net.faults.fault_rules import FaultRule
from ompy_components.btl.usnic.component import COMPONENT
from ompy_components.btl.usnic.module import UsnicModule
from ompy_components.btl.usnic.reliability.sequence import WINDOW

from tests.support.scripted_world import plan_of

SECOND = 1_000_000_000
SIZE = 20_000  # bytes of a fragment: 15 packets


@dataclass
class Run:
    """What came of it.

    Attributes:
        packets: sent for the first time.
        resends: sent again.
        needless: that came twice.
        goodput: what the program sees, Mbit/s.
    """

    packets: int = 0
    resends: int = 0
    needless: int = 0
    goodput: float = 0.0


def stream(
    *rules: FaultRule,
    fragments: int = 60,
    size: int = SIZE,
    seed: int = 1,
    window: int = WINDOW,
    **settings: object,
) -> Run:
    """Rank 0 sends fragments to rank 1; the rules are its wire's, `window` has so many entries.

    All has to arrive. Settings are usnic's parameters.
    """

    run = Run()

    def program(driver: Driver) -> None:
        (module,) = driver.modules
        assert isinstance(module, UsnicModule)
        module._limits = replace(module._limits, window=window)
        counted = module.statistics
        if driver.rank == 0:
            begun = driver.engine.now()
            for _ in range(fragments):
                driver.send(1, driver.data(size), flags=0)
            driver.wait(lambda: not driver.open_fragments, "completions", 900 * SECOND)
            run.goodput = fragments * size * 8_000 / (driver.engine.now() - begun)
            run.packets = counted.num_frag_sends + counted.num_chunk_sends
            run.resends = counted.num_resends
        driver.quiesce()
        driver.check_inbox(ordered=False)
        assert not driver.errors
        if driver.rank == 1:
            run.needless = counted.num_dup_recvs + counted.num_oow_low_recvs

    full = {f"btl_usnic_{name}": value for name, value in settings.items()}
    full["btl_usnic_connectivity_check"] = 0
    Worlds(COMPONENT, {}).make(2, seed=seed, plan=plan_of(rules, [], seed=seed), settings=full).run(
        program
    )
    return run

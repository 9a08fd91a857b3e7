"""Programs of two real ranks with libfabric's providers; names go over the PML."""

from __future__ import annotations

from typing import Any

from ompy.frameworks.nic.fabric import FabricNic
from ompy.frameworks.pml import STANDARD
from ompy.runtime.process import RankProcess

from tests.sim.p2p.programs import buffer, send, world
from tests.support.fabric_programs import PROGRAMS, Side, best

PROVIDERS = ("tcp;ofi_rxm", "shm", "sockets", "udp;ofi_rxd")


class Pair:
    """One of two ranks: the component's device, and a way to tell the other something."""

    def __init__(self, process: RankProcess) -> None:
        self.process = process
        self.comm = world(process)
        self.engine = process.context.engine
        (self.nic,) = process.context.find_nics(FabricNic, "libfabric")
        self.nic.open()

    def swap(self, said: bytes) -> bytes:
        """Tell the peer something, and hear what it says."""
        pml, peer = self.process.pml, 1 - self.comm.rank
        memory, room = buffer(4096)
        receive = pml.irecv(self.comm, room, peer, 1)
        request = pml.isend(self.comm, send(said), peer, 1, STANDARD)
        pml.wait(self.comm, receive)
        pml.wait(self.comm, request)
        return bytes(memory[: receive.length])

    def side(self, provider: str, **more: Any) -> Side:
        """An endpoint over a provider, that knows the peer's."""
        info = best(self.nic, provider)
        return Side(self.engine, self.comm.rank, self.nic, info, self.swap, **more)

    def done(self, side: Side) -> None:
        """Close, when both have come to an end."""
        self.swap(b"the end")
        side.close()


def all_programs(process: RankProcess) -> list[list[str]]:
    """What runs over the emulated device in virtual worlds, over each provider."""
    pair = Pair(process)
    ran = []
    for provider in PROVIDERS:
        for name, program in PROGRAMS.items():
            side = pair.side(provider)
            program(side)
            pair.done(side)
            ran.append([provider, name])
    return ran


def killed(process: RankProcess) -> list[object]:
    """Rank 1 is killed while rank 0 writes to it: what rank 0 sees, and that it can close.

    Returns:
        Whether the work under way ended within ten seconds, and with which errors.
    """
    provider = os.environ["OMPY_TEST_PROVIDER"]
    pair = Pair(process)
    side = pair.side(provider)
    side.meet()
    if side.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    deadline = time.monotonic() + 10
    posted = 0
    errors: set[int] = set()
    while time.monotonic() < deadline and not errors:
        view = side.memory[:4096]
        try:
            if posted < 100:
                posted += side.endpoint.write(
                    view, side.here, side.to, side.there.base, side.there.key, "w"
                )
            side.done += side.queue.read(64)
        except FabricError as problem:
            errors.add(problem.errno)
        errors |= {one.errno for one in side.done if one.errno}
        time.sleep(0.001)
    side.close()
    return [bool(errors), sorted(errors)]

"""Point-to-point calls between ranks 0 and 1; the others wait in the barrier that ends a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np
from mpi4py import MPI

from tools.bench.surface_rows.rows import Row, Step, doubles, room

ITEMS: Final[dict[str, Any]] = {
    "int": 12345,
    "float": 0.5,
    "None": None,
    "str": "a sentence of forty characters, or nearly",
    "bytes": bytes(range(100)),
    "tuple": (1, 2.5, "three", None),
    "list": list(range(20)),
    "dict": {"name": "field", "step": 3, "values": [0.5, 1.5, 2.5]},
    "array": np.arange(128.0),
}
One = Callable[[], Any]


def to_and_fro(comm: Any, send: One, receive: One) -> Step:
    """One rank sends and then receives, the other the other way round."""
    first = (send, receive) if comm.rank == 0 else (receive, send)

    def step(count: int) -> None:
        one, other = first
        for _ in range(count):
            one()
            other()

    return step if comm.rank < 2 else nothing


def nothing(count: int) -> None:
    """What ranks do that have no part in it."""


def both(comm: Any, call: One) -> Step:
    """Both ranks do the same."""

    def step(count: int) -> None:
        for _ in range(count):
            call()

    return step if comm.rank < 2 else nothing


SENDS: Final = ("Send", "Ssend", "Rsend", "Bsend", "Isend", "Issend", "Irsend", "Ibsend")


def rows(comm: Any) -> Iterator[Row]:
    """All of them."""
    yield from _blocking(comm)
    yield from _probes(comm)
    yield from _typed(comm)
    yield from _objects(comm)


def _wait_for(method: Callable[..., Any], *arguments: Any) -> None:
    method(*arguments).Wait()


def _blocking(comm: Any) -> Iterator[Row]:
    peer = 1 - comm.rank

    def exchange(name: str) -> Callable[[int], Step]:
        def make(size: int) -> Step:
            data, back = room(size), room(size)
            if name == "Irecv":
                return to_and_fro(
                    comm, lambda: comm.Send(data, peer), lambda: comm.Irecv(back, peer).Wait()
                )
            method = getattr(comm, "Send" if name == "Recv" else name)
            send = partial(_wait_for, method) if name.startswith("I") else method
            return to_and_fro(comm, lambda: send(data, peer), lambda: comm.Recv(back, peer))

        return make

    for name in (*SENDS, "Recv", "Irecv"):
        yield Row(f"Comm.{name}", name, exchange(name), per=2)

    def sendrecv(size: int) -> Step:
        data, back = room(size), room(size)
        return both(comm, lambda: comm.Sendrecv(data, peer, 0, back, peer))

    def isendrecv(size: int) -> Step:
        data, back = room(size), room(size)
        return both(comm, lambda: comm.Isendrecv(data, peer, 0, back, peer).Wait())

    def replaced(size: int) -> Step:
        data = room(size)
        return both(comm, lambda: comm.Sendrecv_replace(data, peer, 0, peer))

    def replaced_later(size: int) -> Step:
        data = room(size)
        return both(comm, lambda: comm.Isendrecv_replace(data, peer, 0, peer).Wait())

    yield Row("Comm.Sendrecv", "Sendrecv", sendrecv)
    yield Row("Comm.Isendrecv", "Isendrecv", isendrecv)
    yield Row("Comm.Sendrecv_replace", "Sendrecv_replace", replaced)
    yield Row("Comm.Isendrecv_replace", "Isendrecv_replace", replaced_later)


def _probes(comm: Any) -> Iterator[Row]:
    peer = 1 - comm.rank

    def exchange(look: Callable[[Any], None]) -> Callable[[int], Step]:
        def make(size: int) -> Step:
            data, back = room(size), room(size)
            return to_and_fro(comm, lambda: comm.Send(data, peer), lambda: look(back))

        return make

    def probe(back: Any) -> None:
        status = MPI.Status()
        comm.Probe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        comm.Recv(back, status.Get_source(), status.Get_tag())

    def iprobe(back: Any) -> None:
        while not comm.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG):
            pass
        comm.Recv(back)

    def mprobe(back: Any) -> None:
        comm.Mprobe().Recv(back)

    def improbe(back: Any) -> None:
        message = None
        while message is None:
            message = comm.Improbe()
        message.Recv(back)

    def matched_later(back: Any) -> None:
        comm.Mprobe().Irecv(back).Wait()

    yield Row("Comm.Probe", "Probe, Recv", exchange(probe), per=2)
    yield Row("Comm.Iprobe", "Iprobe, Recv", exchange(iprobe), per=2)
    yield Row("Comm.Mprobe", "Mprobe, Message.Recv", exchange(mprobe), per=2)
    yield Row("Comm.Improbe", "Improbe, Message.Recv", exchange(improbe), per=2)
    yield Row("Message.Irecv", "Mprobe, Message.Irecv", exchange(matched_later), per=2)
    yield Row("Message.Recv", "Recv of ANY_SOURCE", exchange(comm.Recv), per=2)


def typed_layouts(size: int) -> dict[str, tuple[Any, int]]:
    """Derived types of about so many bytes of doubles, and the doubles they reach over."""
    count = doubles(size)
    blocks, half = max(count // 4, 1), max(count // 2, 1)
    return {
        "vector": (MPI.DOUBLE.Create_vector(count, 1, 2), 2 * count),
        "blocks": (MPI.DOUBLE.Create_vector(blocks, 4, 8), 8 * blocks),
        "indexed": (MPI.DOUBLE.Create_indexed_block(2, [8 * n for n in range(blocks)]), 8 * blocks),
        "struct": (
            MPI.Datatype.Create_struct([1, 2], [0, 8], [MPI.DOUBLE, MPI.INT]).Create_contiguous(
                half
            ),
            count + 2,
        ),
        "subarray": (
            MPI.DOUBLE.Create_subarray(
                [2, 2 * max(count // 2, 1)], [2, max(count // 2, 1)], [0, 0]
            ),
            4 * max(count // 2, 1),
        ),
    }


def _typed(comm: Any) -> Iterator[Row]:
    peer = 1 - comm.rank

    def exchange(name: str) -> Callable[[int], Step]:
        def make(size: int) -> Step:
            kind, reach = typed_layouts(size)[name]
            kind.Commit()
            data, back = room(reach, float), room(reach, float)
            given, taken = [data, 1, kind], [back, 1, kind]
            return to_and_fro(comm, lambda: comm.Send(given, peer), lambda: comm.Recv(taken, peer))

        return make

    for name in typed_layouts(8):
        yield Row("Comm.Send", f"Send {name}", exchange(name), per=2)


def _objects(comm: Any) -> Iterator[Row]:
    peer = 1 - comm.rank
    ways: dict[str, tuple[Callable[[Any], Any], One]] = {
        "send": (lambda item: comm.send(item, peer), lambda: comm.recv(source=peer)),
        "ssend": (lambda item: comm.ssend(item, peer), lambda: comm.recv(source=peer)),
        "bsend": (lambda item: comm.bsend(item, peer), lambda: comm.recv(source=peer)),
        "isend": (lambda item: comm.isend(item, peer).wait(), lambda: comm.recv(source=peer)),
        "issend": (lambda item: comm.issend(item, peer).wait(), lambda: comm.recv(source=peer)),
        "ibsend": (lambda item: comm.ibsend(item, peer).wait(), lambda: comm.recv(source=peer)),
        "irecv": (lambda item: comm.send(item, peer), lambda: comm.irecv(source=peer).wait()),
        "mprobe": (lambda item: comm.send(item, peer), lambda: comm.mprobe(peer).recv()),
    }

    def exchange(name: str, item: Any) -> Step:
        send, receive = ways[name]
        return to_and_fro(comm, lambda: send(item), receive)

    for kind, item in ITEMS.items():
        yield Row(
            "Comm.send", f"send {kind}", lambda _, item=item: exchange("send", item), False, 2
        )
    for name in list(ways)[1:]:
        yield Row(
            f"Comm.{name}", f"{name} int", lambda _, name=name: exchange(name, 12345), False, 2
        )
    yield Row(
        "Comm.sendrecv",
        "sendrecv int",
        lambda _: both(comm, lambda: comm.sendrecv(12345, peer, 0, None, peer)),
        False,
    )
    yield Row(
        "Comm.recv",
        "recv int of ANY_SOURCE",
        lambda _: to_and_fro(comm, lambda: comm.send(12345, peer), comm.recv),
        False,
        2,
    )

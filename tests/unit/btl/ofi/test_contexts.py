"""Contexts of a scalable endpoint belong to threads, whose own queues come first."""

from __future__ import annotations

from threading import Barrier, Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ompy_components.btl.ofi.contexts import Contexts


class Part(SimpleNamespace):
    """An endpoint, a queue or a vector that can be opened and closed."""

    def enable(self) -> None:
        pass

    def close(self) -> None:
        pass


class Domain:
    """Makes parts that know their number."""

    def __init__(self) -> None:
        self.info = SimpleNamespace(tx_size=4)
        self.made = 0

    def address_vector(self) -> Part:
        return Part()

    def completion_queue(self, depth: int) -> Part:
        self.made += 1
        return Part(number=self.made - 1)

    def scalable_endpoint(self, vector: Part, count: int) -> Part:
        return Part(context=lambda index, queue: Part(number=index, queue=queue))

    def endpoint(self, vector: Part, queue: Part) -> Part:
        return Part(number=0, queue=queue)


def contexts(count: int) -> Contexts:
    return Contexts(cast("Any", Domain()), count, scalable=count > 1, receives=2)


@pytest.mark.parametrize(("count", "threads"), [(4, 4), (4, 3), (2, 5), (1, 3)])
def test_each_thread_has_its_own_as_far_as_they_go(count: int, threads: int) -> None:
    made, together = contexts(count), Barrier(threads)
    found: list[tuple[set[int], list[int]]] = []

    def work() -> None:
        together.wait()
        posted = {cast("Any", made.next()).number for _ in range(5)}
        read = [cast("Any", queue).number for queue in made.in_order()]
        together.wait()  # all are alive, so their numbers differ
        found.append((posted, read))

    running = [Thread(target=work) for _ in range(threads)]
    for one in running:
        one.start()
    for one in running:
        one.join()
    owned = []
    for posted, read in found:
        (own,) = posted
        assert read[0] == own
        assert sorted(read) == list(range(count))
        owned.append(own)
    shares = [owned.count(number) for number in range(count)]
    assert max(shares) - min(shares) <= 1, shares

"""What a handler of btl/sm keeps of a message stays what it was, however cheap views are made."""

from __future__ import annotations

from ompy.frameworks.btl import BTL_OWNERSHIP, NO_ORDER, ReceiveCallback
from ompy.runtime.ranks.process import RankProcess

from tests.support.worlds import virtual

TAG = 200
MESSAGES = 5


class Keeper(ReceiveCallback):
    """Keeps the views of some messages, and what they said."""

    def __init__(self, kept: set[int]) -> None:
        self.kept = kept
        self.views: dict[int, memoryview] = {}
        self.said: list[bytes] = []

    def received(self, module, endpoint, tag, data) -> None:
        if len(self.said) in self.kept:
            self.views[len(self.said)] = data
        self.said.append(bytes(data))


def message(number: int) -> bytes:
    return bytes([number]) * (8 + number)


def program(process: RankProcess, kept: set[int]) -> None:
    context = process.context
    keeper = Keeper(kept)
    context.active_messages.register(TAG, keeper)
    (module,) = [module for module in context.btls if module.name == "sm"]
    if context.rank:
        context.engine.wait_until(lambda: len(keeper.said) == MESSAGES)
    else:
        endpoint = module.reach(context.procs[1])
        for number in range(MESSAGES):
            descriptor = module.alloc(endpoint, NO_ORDER, 8 + number, BTL_OWNERSHIP)
            descriptor.segment[:] = message(number)
            assert module.send(endpoint, descriptor, TAG) >= 0
    context.wireup.fence()
    if context.rank:
        assert keeper.said == [message(number) for number in range(MESSAGES)]
        for number, view in keeper.views.items():
            assert bytes(view) == message(number), f"the view of message {number} has moved"


def test_views_that_are_kept_stay() -> None:
    for kept in (set(range(MESSAGES)), {0}, {1, 2}, {4}, set()):
        virtual(2, lambda process, kept=kept: program(process, kept), btl="self,sm")

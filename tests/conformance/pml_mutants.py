"""Planted defects in a wrapper of the PML, and the test of the kit that has to notice each."""

from __future__ import annotations

from ompy.data.convertor import ContiguousConvertor
from ompy.data.request import Request
from ompy.frameworks.pml import STANDARD, SYNCHRONOUS, Pml, PmlWrapper, PmlWrapperComponent

LARGE = 100_000


class LosesOne(PmlWrapper):
    """The fifth message of a rank is sent to nobody."""

    count = 0

    def isend(self, communicator, convertor, target, tag, mode):
        self.count += tag >= 0
        if self.count == 5 and tag >= 0:
            done = Request()
            done.finish()
            return done
        return self.inner.isend(communicator, convertor, target, tag, mode)


class SendsTwice(PmlWrapper):
    """Small messages go twice."""

    def isend(self, communicator, convertor, target, tag, mode):
        if 0 < convertor.size < 100 and tag >= 0 and mode == STANDARD:
            copy = bytearray(convertor.size)
            convertor.pack(0, memoryview(copy))
            again = ContiguousConvertor(memoryview(copy))
            self.inner.isend(communicator, again, target, tag, mode)
        return self.inner.isend(communicator, convertor, target, tag, mode)


class Alters(PmlWrapper):
    """The last byte of messages of 4096 bytes is another one."""

    def isend(self, communicator, convertor, target, tag, mode):
        if convertor.size == 4096 and tag >= 0:
            copy = bytearray(convertor.size)
            convertor.pack(0, memoryview(copy))
            copy[-1] ^= 1
            convertor = ContiguousConvertor(memoryview(copy))
        return self.inner.isend(communicator, convertor, target, tag, mode)


class Overtakes(PmlWrapper):
    """Large messages are sent a while later."""

    def __init__(self, inner, context):
        super().__init__(inner)
        self.context = context

    def isend(self, communicator, convertor, target, tag, mode):
        if convertor.size < LARGE or tag < 0:
            return self.inner.isend(communicator, convertor, target, tag, mode)
        promised, copy = Request(), bytearray(convertor.size)
        convertor.pack(0, memoryview(copy))

        def later() -> None:
            made = ContiguousConvertor(memoryview(copy))
            request = self.inner.isend(communicator, made, target, tag, mode)
            request.notify(promised.finish)

        self.context.engine.call_later(200_000, later)
        return promised


class NotSynchronous(PmlWrapper):
    """Synchronous sends are standard ones."""

    def isend(self, communicator, convertor, target, tag, mode):
        plain = STANDARD if mode == SYNCHRONOUS else mode
        return self.inner.isend(communicator, convertor, target, tag, plain)


class EarlyCompletion(PmlWrapper):
    """Large sends are said to be complete before the memory may be used again."""

    def isend(self, communicator, convertor, target, tag, mode):
        request = self.inner.isend(communicator, convertor, target, tag, mode)
        if convertor.size < LARGE or tag < 0:
            return request
        done = Request()
        done.finish()
        return done


class WrongCommunicator(PmlWrapper):
    """Messages of a duplicate are sent in COMM_WORLD."""

    world = None

    def add_communicator(self, communicator):
        if communicator.context_id == 0:
            self.world = communicator
        self.inner.add_communicator(communicator)

    def isend(self, communicator, convertor, target, tag, mode):
        same = communicator.size == self.world.size and tag >= 0
        used = self.world if same else communicator
        return self.inner.isend(used, convertor, target, tag, mode)


class HidesProbes(PmlWrapper):
    """A probe never finds a large message."""

    def iprobe(self, communicator, source, tag):
        return None

    def probe(self, communicator, source, tag):
        found = self.inner.probe(communicator, source, tag)
        found.length = found.received = found.length - 1
        return found


class NoCancel(PmlWrapper):
    """Cancelling does nothing."""

    def cancel(self, request):
        pass


class ChangesNames(PmlWrapper):
    """The name that peers compare becomes the wrapper's."""


class KeepsQuiet(PmlWrapper):
    """What is here unasked for is not said."""

    def unreceived(self, communicator):
        return []


class Slow(PmlWrapper):
    """Each message waits a second."""

    def __init__(self, inner, context):
        super().__init__(inner)
        self.context = context

    def isend(self, communicator, convertor, target, tag, mode):
        if tag >= 0:
            self.context.engine.wait_until(lambda: False, 1_000_000_000)
        return self.inner.isend(communicator, convertor, target, tag, mode)


class LeavesTimers(PmlWrapper):
    """Each message leaves a timer."""

    def __init__(self, inner, context):
        super().__init__(inner)
        self.context = context

    def isend(self, communicator, convertor, target, tag, mode):
        self.context.engine.call_later(10**15, lambda: None)
        return self.inner.isend(communicator, convertor, target, tag, mode)


class Declines(PmlWrapper):
    """It is never used."""


PLANTED: dict[type[Pml], str] = {
    LosesOne: "test_order",
    SendsTwice: "test_order",
    Alters: "test_every_size",
    Overtakes: "test_order",
    NotSynchronous: "test_a_synchronous_send",
    EarlyCompletion: "test_every_size",
    WrongCommunicator: "test_communicators",
    HidesProbes: "test_probe",
    NoCancel: "test_cancel",
    ChangesNames: "test_has_a_pml_inside",
    KeepsQuiet: "test_answers_of_the_pml_inside",
    Slow: "test_messages_come_soon",
    LeavesTimers: "test_what_stays",
    Declines: "test_is_used",
}


def component(planted: type[PmlWrapper]) -> PmlWrapperComponent:
    class Mutant(PmlWrapperComponent):
        name = "mutant"
        version = "0"
        api = (2, 7)

        def declines(self):
            return "it is a mutant" if planted is Declines else ""

        def wrap(self, context, inner):
            if planted is ChangesNames:
                context.pml_name = self.name
            if "__init__" in vars(planted):
                return planted(inner, context)
            return planted(inner)

    return Mutant()

"""Planted defects: the reference BTL (or self), broken in one way each.

`PLANTED` says which test of the kit has to notice which of them.
"""

from __future__ import annotations

import random
import time

from ompy.data.convertor import GatherConvertor
from ompy.engine.base import Poller
from ompy.frameworks import btl
from ompy.frameworks.btl_base.atomics import SUPPORTS_MAX, WIDTH, AtomicOp
from ompy.mca.parameter import Parameter
from ompy_components.btl.self.component import SelfComponent
from ompy_components.btl.self.module import SelfModule

from tests.conformance.reference import (
    ANSWER,
    FRAGMENT,
    PARAMETERS,
    RESEND,
    ReferenceComponent,
    ReferenceModule,
)

SECOND = 1_000_000_000


class LosesOne(ReferenceModule):
    """Acknowledges the tenth fragment it gets, and delivers it to nobody."""

    count = 0

    def deliver(self, endpoint, kind, tag, body):
        self.count += kind == FRAGMENT
        if self.count != 10 or kind != FRAGMENT:
            super().deliver(endpoint, kind, tag, body)


class TakesRepeats(ReferenceModule):
    """Delivers packets again that come again."""

    def is_due(self, endpoint, number):
        return number <= endpoint.expected


class Overtakes(ReferenceModule):
    """Lets the second fragment of a long queue go first."""

    def transmit(self, endpoint):
        queue = endpoint.queue
        if len(queue) > 3:
            queue[0], queue[1] = queue[1], queue[0]
        return super().transmit(endpoint)


class CompletesTwice(ReferenceModule):
    """Completes large fragments once more."""

    def complete(self, endpoint, packet, status):
        super().complete(endpoint, packet, status)
        if len(packet.body) > 5000:
            super().complete(endpoint, packet, status)


class NeverCompletes(ReferenceModule):
    """Forgets to complete fragments of half a page."""

    def complete(self, endpoint, packet, status):
        if len(packet.body) != 2048:
            super().complete(endpoint, packet, status)


class AnswersCompleted(ReferenceModule):
    """Says that a small fragment is done already, and completes it by callback as well."""

    def send(self, endpoint, descriptor, tag):
        result = super().send(endpoint, descriptor, tag)
        return btl.COMPLETED if result == btl.QUEUED and len(descriptor.segment) < 50 else result


class CompletesTooSoon(ReferenceModule):
    """Completes a fragment when it goes out, not when the peer has it."""

    def sent_first(self, endpoint, packet):
        self.complete(endpoint, packet, 0)
        packet.descriptor = None


class ErrorComesLate(ReferenceModule):
    """Fails the fragments first, and tells of the broken path afterwards."""

    late = None

    def tell_of(self, proc, why):
        self.late = proc, why

    def path_failed(self, why):
        super().path_failed(why)
        if self.late is not None:
            super().tell_of(*self.late)
            self.late = None


class TellsErrorTwice(ReferenceModule):
    """Tells of a broken path once more."""

    def tell_of(self, proc, why):
        super().tell_of(proc, why)
        super().tell_of(proc, why)


class ForgetsTheQueue(ReferenceModule):
    """Fails what is on the wire, and not what waits behind it."""

    def fail(self, endpoint):
        waiting = list(endpoint.queue)
        endpoint.queue.clear()
        super().fail(endpoint)
        endpoint.queue.extend(waiting)


class AcceptsAfterwards(ReferenceModule):
    """Goes on accepting fragments over a broken path."""

    def send(self, endpoint, descriptor, tag):
        return btl.COMPLETED if endpoint.broken else super().send(endpoint, descriptor, tag)


class SaysItIsTheEnd(ReferenceModule):
    """Says that the peer is gone, where a path is."""

    def begin_failover(self):
        return True


class ForgetsWhatSendiTook(ReferenceModule):
    """Takes fragments by sendi, and does not say that they are lost."""

    def give_back_fragment(self, endpoint, packet):
        pass


class ReturnsTwice(ReferenceModule):
    """Gives back what sendi took once more."""

    def give_back_fragment(self, endpoint, packet):
        super().give_back_fragment(endpoint, packet)
        super().give_back_fragment(endpoint, packet)


class ReturnsBackwards(ReferenceModule):
    """Gives back what sendi took, the last one first."""

    def fail(self, endpoint):
        endpoint.queue.reverse()
        super().fail(endpoint)


class ReturnsTooSoon(ReferenceModule):
    """Gives back what sendi took before it tells of the broken path."""

    def breaks(self, endpoint, generation):
        super().breaks(endpoint, generation)
        for packet in [*endpoint.unacknowledged, *endpoint.queue]:
            if packet.immediate:
                packet.immediate = False
                self.give_back_fragment(endpoint, packet)


class StaysBroken(ReferenceModule):
    """Does not try to mend a broken path."""

    def knock_later(self):
        pass


class HealsInSilence(ReferenceModule):
    """Takes a path back and tells nobody."""

    def heal(self, endpoint):
        endpoint.broken = False
        endpoint.next_number = endpoint.expected = 0


class TrustsTooSoon(ReferenceModule):
    """Takes a path for healed when some time has passed."""

    def knock(self):
        for endpoint in self.peers():
            if endpoint.broken:
                self.heal(endpoint)
        self.knocking = None


class BreaksOnce(ReferenceModule):
    """Tells of the first time that a path breaks only."""

    told = False

    def tell_of(self, proc, why):
        if not self.told:
            self.told = True
            super().tell_of(proc, why)


class CorruptsAtTheLimit(ReferenceModule):
    """Alters the last byte of the largest fragment there can be."""

    def body(self, descriptor):
        data = bytearray(super().body(descriptor))
        if len(data) == self.max_send_size:
            data[-1] ^= 1
        return bytes(data)


class RefusesTheLimit(ReferenceModule):
    """Never has room for the largest fragment there can be."""

    def alloc(self, endpoint, order, size, flags):
        return None if size >= self.max_send_size else super().alloc(endpoint, order, size, flags)


class PreparesNothing(ReferenceModule):
    """Takes nothing of a message that does not fit as a whole."""

    def prepare_src(self, endpoint, convertor, offset, order, reserve, size, flags):
        if size > self.max_send_size - reserve:
            size = 0
        return super().prepare_src(endpoint, convertor, offset, order, reserve, size, flags)


class PacksPiecesWrong(ReferenceModule):
    """Alters a byte of what lies in pieces."""

    def prepare_src(self, endpoint, convertor, offset, order, reserve, size, flags):
        made = super().prepare_src(endpoint, convertor, offset, order, reserve, size, flags)
        if made is not None and isinstance(convertor, GatherConvertor) and size > 100:
            made.segment[-1] ^= 1
        return made


class OneTag(ReferenceModule):
    """Delivers everything under one tag."""

    def deliver(self, endpoint, kind, tag, body):
        super().deliver(endpoint, kind, 0x40, body)


class DeliversInSend(ReferenceModule):
    """Takes in what has arrived while it sends."""

    def send(self, endpoint, descriptor, tag):
        result = super().send(endpoint, descriptor, tag)
        self.take_in()
        return result


class LooksAtUserMemoryLate(ReferenceModule):
    """Completes a prepared fragment at once, and sends it from the user's memory later."""

    def prepare_src(self, endpoint, convertor, offset, order, reserve, size, flags):
        made = super().prepare_src(endpoint, convertor, offset, order, reserve, size, flags)
        if made is not None and convertor.view is not None and made.payload_size:
            made.payload = convertor.view[offset : offset + made.payload_size]
        return made

    def send(self, endpoint, descriptor, tag):
        result = super().send(endpoint, descriptor, tag)
        if result == btl.QUEUED and descriptor.payload is not None:
            packet = endpoint.queue[-1]
            self.complete(endpoint, packet, 0)
            packet.late, packet.descriptor = descriptor, None
        return result

    def transmit(self, endpoint):
        for packet in endpoint.queue:
            late = getattr(packet, "late", None)
            if late is not None:
                packet.body = bytes(late.segment[: -late.payload_size]) + bytes(late.payload)
        return super().transmit(endpoint)


class NoChecksum(ReferenceModule):
    """Believes every packet."""

    def intact(self, packet):
        return True


class GivesUpTheBusy(ReferenceModule):
    """Takes a peer that has been silent for a second for a dead one."""

    silent = 0

    def resend(self):
        self.silent += RESEND
        if self.silent > SECOND:
            self.path_failed("no answer")
        super().resend()

    def take_in(self):
        count = super().take_in()
        if count:
            self.silent = 0
        return count


class ReachesItself(ReferenceModule):
    """Offers an endpoint for the own rank."""

    def reach(self, proc):
        return btl.Endpoint(self, proc) if proc is self.context.me else super().reach(proc)


class ReachesWhoIsNotThere(ReferenceModule):
    """Offers endpoints for peers that have published nothing."""

    def reach(self, proc):
        if proc is not self.context.me and "btl.reference" not in self.context.modex(proc):
            return btl.Endpoint(self, proc)
        return super().reach(proc)


class LosesDescriptors(ReferenceModule):
    """Forgets the sent descriptors that their callers free."""

    def free(self, descriptor):
        if descriptor.flags & btl.BTL_OWNERSHIP or not descriptor.tag:
            super().free(descriptor)


class CountsTwice(ReferenceModule):
    """Takes a descriptor for free that its caller has yet to free."""

    def complete(self, endpoint, packet, status):
        self.room += packet.descriptor is not None
        super().complete(endpoint, packet, status)


class SharesMemory(ReferenceModule):
    """Gives every descriptor the same memory."""

    common = bytearray(1 << 15)

    def alloc(self, endpoint, order, size, flags):
        made = super().alloc(endpoint, order, size, flags)
        if made is not None:
            made.segment = memoryview(self.common)[:size]
        return made


class HangsOnTheDeparted(ReferenceModule):
    """Waits at its end for peers that are gone."""

    def nothing_open(self):
        return not any(e.queue or e.unacknowledged for e in self.endpoints.values())

    def resend(self):
        pass


class EndsAtOnce(ReferenceModule):
    """Ends without delivering what it has accepted."""

    def finalize(self):
        self.give_back()


class TalksAfterwards(ReferenceModule):
    """Completes its last fragment once more when it has ended."""

    last = ()

    def complete(self, endpoint, packet, status):
        self.last = (endpoint, packet)
        super().complete(endpoint, packet, status)

    def finalize(self):
        super().finalize()
        self.context.engine.call_later(SECOND, self.again)

    def again(self):
        super().complete(*self.last, 0)


class LeavesPoller(ReferenceModule):
    """Adds a poller of its own and forgets it."""

    class Watch(Poller):
        def poll(self):
            return 0

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.context.engine.add_poller(self.Watch())


class LeavesTimer(ReferenceModule):
    """Starts a timer that nobody cancels."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.context.engine.call_later(10 * SECOND, self.resend)


class LeavesSocket(ReferenceModule):
    """Does not close its socket."""

    def give_back(self):
        if self.timer is not None:
            self.timer.cancel()


class LeavesObjects(ReferenceModule):
    """Is remembered for ever."""

    everybody: list[ReferenceModule] = []  # noqa: RUF012

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.everybody.append(self)


class OrdersByAddress(ReferenceModule):
    """Serves its peers in the order of a set of objects, by their addresses."""

    def peers(self):
        return list(set(self.endpoints.values()))


class OrdersByHash(ReferenceModule):
    """Serves its peers in the order of a set of strings."""

    def peers(self):
        return [self.endpoints[int(text)] for text in {str(rank) for rank in self.endpoints}]


class UsesTheClock(ReferenceModule):
    """Asks the clock of the process when to send again."""

    def resend(self):
        late = time.monotonic_ns() % RESEND
        self.timer = self.context.engine.call_later(late, super().resend)


class UsesChance(ReferenceModule):
    """Draws from random numbers that are not the engine's."""

    def resend(self):
        late = random.randrange(RESEND)
        self.timer = self.context.engine.call_later(late, super().resend)


class IgnoresSettings(ReferenceModule):
    """Has the same eager limit whatever is set."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.eager_limit = 4096


class WritesTooMuch(ReferenceModule):
    """Puts one byte more than it should."""

    def write(self, memory, address, data):
        super().write(memory, address, bytes(data) + b"\0")


class PutCompletesAtOnce(ReferenceModule):
    """Says that a put is done when it has been queued."""

    def put(self, *arguments):
        result = super().put(*arguments)
        if result == btl.QUEUED:
            del self.transfers[self.names]
            return btl.COMPLETED
        return result


class GetsWrong(ReferenceModule):
    """Alters the last byte of a long get."""

    def replied(self, endpoint, body):
        body = bytearray(body)
        if len(body) > 1000:
            body[-1] ^= 1
        super().replied(endpoint, body)


class NoLimit(ReferenceModule):
    """Accepts puts and gets beyond its limits, and forgets them."""

    def move(self, get, endpoint, local, *arguments):
        if len(local) > self.put_limit:
            return btl.QUEUED
        return super().move(get, endpoint, local, *arguments)


class BelievesEveryKey(ReferenceModule):
    """Goes on using memory that was given back."""

    def deregister_mem(self, handle):
        pass


class DeliversEverything(SelfModule):
    """Delivers all there is in one poll."""

    def poll(self):
        count = 0
        for _ in range(len(self._queue)):
            before = len(self._queue)
            super().poll()
            count += before - len(self._queue)
            if not self._queue:
                break
        return count


class DeliversEchoes(SelfModule):
    """Delivers in one poll also what its callbacks send meanwhile."""

    def poll(self):
        count = 0
        while self._queue:
            count += super().poll()
        return count


class ForgetsTheSign(ReferenceModule):
    """Compares numbers as if they had no sign."""

    def computed(self, op, type_, old, operand, compare):
        if op in (AtomicOp.MIN, AtomicOp.MAX):
            bits = 8 * WIDTH[type_]
            pick = min if op is AtomicOp.MIN else max
            return pick(old, operand, key=lambda value: value % (1 << bits))
        return super().computed(op, type_, old, operand, compare)


class FetchesTheNew(ReferenceModule):
    """Answers with the word as it is afterwards."""

    def replied(self, endpoint, body):
        body = bytearray(body)
        if len(body) == ANSWER.size + 8:
            body[-8] ^= 1
        super().replied(endpoint, body)


class StoresTooMuch(ReferenceModule):
    """Stores eight bytes whatever the word has."""

    def store(self, memory, address, word):
        super().store(memory, address, word.ljust(8, b"\0"))


class SwapsAlways(ReferenceModule):
    """Does not compare before it swaps."""

    def computed(self, op, type_, old, operand, compare):
        if op is AtomicOp.CSWAP:
            return operand
        return super().computed(op, type_, old, operand, compare)


class LetsOthersIn(ReferenceModule):
    """Stores a little later; what comes meanwhile finds the old word."""

    def store(self, memory, address, word):
        later = self.context.engine.call_later
        later(30_000, lambda: ReferenceModule.store(self, memory, address, word))


class ComparesAndLetsIn(ReferenceModule):
    """Compares at once and stores what it has found then a little later."""

    def computed(self, op, type_, old, operand, compare):
        self.swapping = op is AtomicOp.CSWAP and old == compare
        return super().computed(op, type_, old, operand, compare)

    def store(self, memory, address, word):
        if not self.swapping:
            super().store(memory, address, word)
            return
        later = self.context.engine.call_later
        later(30_000, lambda: ReferenceModule.store(self, memory, address, word))


class ChangesWhatItMayNot(ReferenceModule):
    """Does not look what memory was registered for."""

    def changeable(self, handle):
        return True


class AtomicCompletesAtOnce(ReferenceModule):
    """Says that an atomic that fetches nothing is done when it has been queued."""

    def atomic(self, endpoint, asked, callback, context):
        result = super().atomic(endpoint, asked, callback, context)
        if result == btl.QUEUED and asked.local is None:
            del self.transfers[self.names]
            return btl.COMPLETED
        return result


class PromisesAtomics(ReferenceModule):
    """Has no XOR, and says that it has."""

    def atomic(self, endpoint, asked, callback, context):
        if asked.op is AtomicOp.XOR:
            return btl.NOT_AVAILABLE
        return super().atomic(endpoint, asked, callback, context)


class HidesAtomics(ReferenceModule):
    """Has MAX, and does not say so."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.atomic_flags &= ~SUPPORTS_MAX


class NamesNoAtomics(ReferenceModule):
    """Has the flags of atomics, and names none."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.atomic_flags = 0


class Mutant(ReferenceComponent):
    """The reference component around a broken module."""


class SelfMutant(SelfComponent):
    """The component self around a broken module."""

    def __init__(self, module_class):
        self.module_class = module_class

    def init(self, context):
        return [self.module_class(context, self.values)]


def _free_list(unit, minimum):
    told = "Descriptors there are in all."
    return Parameter("free_list_max", "int", 24, told, level=5, unit=unit, minimum=minimum)


class NoUnit(ReferenceComponent):
    """Has a number without a unit."""

    parameters = (*PARAMETERS[:-1], _free_list("", 1))


class WrongDefault(ReferenceComponent):
    """Has a default below the least value there may be."""

    parameters = (*PARAMETERS[:-1], _free_list("descriptors", 100))


class Nameless(ReferenceComponent):
    """Has a name that cannot stand in a list."""

    name = "Reference BTL"


class Unexplained(ReferenceComponent):
    """Is expected to fail a test and does not say why."""

    expected_failures = {"test_order": " "}  # noqa: RUF012


class Promising(ReferenceComponent):
    """Is expected to fail a test, and passes it."""

    expected_failures = {"test_order_on_a_narrow_rail": "a window of 8 packets"}  # noqa: RUF012


class Silent(ReferenceComponent):
    """Does not say what it promises."""

    capabilities = None


ORDERS_BY_HASH = Mutant(OrdersByHash)  # another interpreter has to find it

PLANTED = {
    LosesOne: "test_everybody_to_everybody[seed0]",
    TakesRepeats: "test_bad_wire_is_hidden[seed0-duplicate]",
    Overtakes: "test_order[seed0]",
    CompletesTwice: "test_exactly_once[owned]",
    NeverCompletes: "test_every_size[alloc]",
    AnswersCompleted: "test_exactly_once[owned]",
    CompletesTooSoon: "test_completed_well_means_delivered[5000]",
    ErrorComesLate: "test_completions_follow_the_error[1500]",
    TellsErrorTwice: "test_completions_follow_the_error[1500]",
    ForgetsTheQueue: "test_queued_fragments_fail[seed0]",
    AcceptsAfterwards: "test_afterwards",
    SaysItIsTheEnd: "test_another_path_may_do",
    ForgetsWhatSendiTook: "test_sendi_is_returned[5000]",
    ReturnsTwice: "test_sendi_is_returned[5000]",
    ReturnsBackwards: "test_sendi_is_returned[5000]",
    ReturnsTooSoon: "test_sendi_is_returned[5000]",
    StaysBroken: "test_heals[50000000]",
    HealsInSilence: "test_heals[50000000]",
    TrustsTooSoon: "test_heals[3000000000]",
    BreaksOnce: "test_breaks_again",
    CorruptsAtTheLimit: "test_every_size[alloc]",
    RefusesTheLimit: "test_every_size[alloc]",
    PreparesNothing: "test_prepare_takes_no_more_than_fits",
    PacksPiecesWrong: "test_every_size[gather]",
    OneTag: "test_everybody_to_everybody[seed0]",
    DeliversInSend: "test_nothing_arrives_from_within_send",
    LooksAtUserMemoryLate: "test_user_memory[seed0-prepare]",
    NoChecksum: "test_corruption[seed0]",
    GivesUpTheBusy: "test_a_busy_peer_is_not_a_dead_one[seed0]",
    ReachesItself: "test_who_gets_an_endpoint",
    ReachesWhoIsNotThere: "test_a_peer_without_it_is_not_reached",
    LosesDescriptors: "test_free_lists_keep_their_length",
    CountsTwice: "test_free_lists_keep_their_length",
    SharesMemory: "test_free_lists_keep_their_length",
    HangsOnTheDeparted: "test_finalize_after_a_peer_has_departed[seed0-talked before]",
    EndsAtOnce: "test_finalize_with_work_in_flight[seed0-alloc]",
    TalksAfterwards: "test_silence_after_finalize",
    LeavesPoller: "test_pollers",
    LeavesTimer: "test_timers",
    LeavesSocket: "test_sockets",
    LeavesObjects: "test_objects",
    OrdersByAddress: "test_same_seed_same_trace[seed0]",
    OrdersByHash: "test_hash_seed_has_no_part",
    UsesTheClock: "test_wall_clock_and_chance_have_no_part",
    UsesChance: "test_wall_clock_and_chance_have_no_part",
    IgnoresSettings: "test_common_parameters_take_effect",
    WritesTooMuch: "test_put",
    PutCompletesAtOnce: "test_put",
    GetsWrong: "test_get",
    NoLimit: "test_put_over_the_limit",
    ForgetsTheSign: "test_every_operation[INT64]",
    FetchesTheNew: "test_every_operation[UINT64]",
    StoresTooMuch: "test_every_operation[INT32]",
    SwapsAlways: "test_every_operation[UINT32]",
    LetsOthersIn: "test_nothing_gets_in_between[seed0]",
    ComparesAndLetsIn: "test_compare_and_swap[seed0]",
    ChangesWhatItMayNot: "test_other_memory[no access]",
    AtomicCompletesAtOnce: "test_without_fetching[INT64]",
    PromisesAtomics: "test_every_operation[UINT64]",
    HidesAtomics: "test_what_is_not_there",
    NamesNoAtomics: "test_something_is_there",
    BelievesEveryKey: "test_put_into_other_memory[given back]",
    DeliversEverything: "test_one_poll_is_bounded",
    DeliversEchoes: "test_an_echo_does_not_hold_a_poll",
    NoUnit: "test_parameters_are_explained",
    WrongDefault: "test_defaults_are_valid",
    Nameless: "test_names",
    Unexplained: "test_expected_failures_are_tests",
    Promising: "test_order_on_a_narrow_rail[seed0]",
    Silent: "test_names",
}


def component(planted: type) -> btl.BtlComponent:
    """A component with this defect."""
    if planted is OrdersByHash:
        return ORDERS_BY_HASH
    if issubclass(planted, btl.BtlComponent):
        return planted()
    return SelfMutant(planted) if issubclass(planted, SelfModule) else Mutant(planted)

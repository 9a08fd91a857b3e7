"""From the parameters and the devices to modules, with the warnings that go with them."""

from __future__ import annotations

from collections.abc import Sequence

from ompy import outputs
from ompy.data.errors import ERR_ARG, MPIError
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.verbs import VerbsNic
from ompy.mca.component import NotAvailable
from ompy.mca.parameter import Values

from ompy_components.btl.openib import modex, timing
from ompy_components.btl.openib.module import OpenibModule
from ompy_components.btl.openib.queues import receive_queues
from ompy_components.btl.openib.queues.receive_queues import (
    BadReceiveQueues,
    Entry,
    PerPeer,
    Shared,
)


def warn_once(context: RankContext, text: str) -> None:
    """Tell the user, once for the job."""
    if context.rank == 0:
        outputs.tell(f"ompy: {text}\n", "warning", "warning")


def modules(context: RankContext, values: Values, nics: Sequence[VerbsNic]) -> list[OpenibModule]:
    """A module for each device; publishes what peers have to know.

    Raises:
        NotAvailable: the device is too small for what the parameters ask for.
        NicError: it refuses.
        MPIError: ERR_ARG, `receive_queues` breaks a rule.
    """
    limits = timing.timing_limits(values)
    entries = _entries(context, values)
    for text in limits.warnings:
        warn_once(context, text)
    made = []
    for nic in nics:
        nic.open()
        _check(nic, entries, values.cq_size, values.eager_limit)
        made.append(OpenibModule(context, values, nic, entries, limits))
    records = [module.record for module in made]
    context.wireup.publish(
        modex.KEY, modex.pack_records(receive_queues.canonical(entries), records)
    )
    for index, module in enumerate(made):
        module.notices.ports = [other.notices for other in made]
        module.open_connections(records, index)
    return made


def _entries(context: RankContext, values: Values) -> list[Entry]:
    largest = max(values.eager_limit, values.max_send_size)
    text = values.receive_queues or receive_queues.default(values.eager_limit, values.max_send_size)
    try:
        entries, warnings = receive_queues.parse_receive_queues(text, largest)
    except BadReceiveQueues as problem:
        raise MPIError(ERR_ARG, f"btl_openib_receive_queues: {problem}") from None
    for warning in warnings:
        warn_once(context, f"btl_openib_receive_queues: {warning}")
    return entries


def _check(nic: VerbsNic, entries: Sequence[Entry], cq_size: int, eager_limit: int) -> None:
    """See that queues have entries and completions have room, before anything is posted."""
    posted = {True: 0, False: 0}
    for entry in entries:
        depth = entry.num + entry.rsv if isinstance(entry, PerPeer) else entry.num
        if depth > nic.depth_max:
            raise NotAvailable(
                f"{entry.text} of btl_openib_receive_queues needs {depth} entries, and "
                f"{nic.identity.name} has queues of {nic.depth_max}"
            )
        if isinstance(entry, Shared):
            posted[entry.size <= eager_limit] += entry.num
    if max(posted.values()) >= cq_size:
        raise NotAvailable(
            f"btl_openib_cq_size, {cq_size}, has no room for the {max(posted.values())} shared "
            f"buffers of btl_openib_receive_queues"
        )

"""A fault script as the ranks get it: rules with everything resolved, values that JSON carries.

The launcher reads and checks what the user wrote (`ompy.runtime.faults.fault_script`); nothing
is parsed or doubted here. `net/faults/scripted.py` does to packets and connections what the rules
say.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

# what strikes single packets, and what lasts
PACKET_FAULTS: Final = ("drop", "duplicate", "reorder", "corrupt", "delay")
PACING_FAULTS: Final = ("rate_limit", "slow_receiver")
NIC_FAULTS: Final = ("link_down", "nic_gone")
LASTING_FAULTS: Final = ("black_hole", *NIC_FAULTS)
WORK_FAULTS: Final = ("work_error",)  # of what is posted to a NIC, before there is a packet of it
# of what is asked of a file; a write that is short is done in more pieces
STORAGE_FAULTS: Final = ("io_error", "short_write", "enospc")
# NICs whose links find errors and send again by themselves, and the faults that are seen there
RETRYING_RAILS: Final = ("gemini_0", "aries_0")
HOLDING_FAULTS: Final = ("delay", "reorder")
SEEN_FAULTS: Final = (*HOLDING_FAULTS, *NIC_FAULTS, *WORK_FAULTS)
FAULTS: Final = (*PACKET_FAULTS, *PACING_FAULTS, *LASTING_FAULTS, *WORK_FAULTS, *STORAGE_FAULTS)
NEVER: Final = -1  # no such moment
FORGED: Final = "forged"  # eight bits, and the checksums are right: connections deliver them


class FaultRule(NamedTuple):
    """One fault of a script.

    Times are nanoseconds, those of the window since the rank began; `NEVER` where there is none.

    Attributes:
        what: one of `FAULTS`.
        ranks: at which; empty for all.
        peers: towards which; empty for all.
        rails: names of interfaces; empty for all.
        direction: `out`, `in` or `both`, as `ranks` see it.
        since: begin of the window.
        until: its end.
        lasts: how long what lasts does so once it was triggered.
        nth: of the packets of a flow, from 1 on; empty for any.
        message: of those `ranks` begin towards `peers`, from 1 on; 0 for any.
        byte: of what follows that message's begin, from 1 on.
        probability: of each packet to be struck; 1 for all.
        seed: of this rule's own draws.
        times: how often at most; 0 for ever.
        delay: how long packets are held.
        jitter: how much longer at most, drawn for each.
        rate: bits per second.
        buffer: bytes that wait for their turn; what does not fit is lost.
        mode: of a corruption: `bit`, `byte`, or `FORGED`.
        bit: which one; `NEVER` draws it.
        above: of datagrams, only those of more bytes; 0 for all.
        gives_up: how long a connection waits in a black hole before it fails.
        error: number that work which is struck ends with.
        origin: where the user wrote it.
        text: as the user would write it in one line.
    """

    what: str
    ranks: tuple[int, ...] = ()
    peers: tuple[int, ...] = ()
    rails: tuple[str, ...] = ()
    direction: str = "out"
    since: int = 0
    until: int = NEVER
    lasts: int = NEVER
    nth: tuple[int, ...] = ()
    message: int = 0
    byte: int = 1
    probability: float = 1.0
    seed: int = 0
    times: int = 0
    delay: int = 0
    jitter: int = 0
    rate: int = 0
    buffer: int = 0
    mode: str = "bit"
    bit: int = NEVER
    above: int = 0
    gives_up: int = NEVER
    error: int = 0
    origin: str = ""
    text: str = ""

    @property
    def triggered(self) -> bool:
        """Whether a packet decides when it strikes, not the clock alone."""
        return bool(self.nth or self.message)

    def sits_at(self, rank: int) -> bool:
        """Whether any packet that `rank` sends, or its NIC, may be struck."""
        outward = not self.ranks or rank in self.ranks
        if self.what in NIC_FAULTS or self.direction == "out":
            return outward
        inward = not self.peers or rank in self.peers
        return inward or (self.direction == "both" and outward)

    def concerns(self, sender: int, receiver: int, rail: str) -> bool:
        """Whether it is about what `sender` sends to `receiver` over `rail`.

        `receiver` is negative while nobody knows it: a rule that names ranks is not about that.
        """
        if self.rails and rail not in self.rails:
            return False
        forth = _among(sender, self.ranks) and _among(receiver, self.peers)
        if self.direction == "out":
            return forth
        back = _among(sender, self.peers) and _among(receiver, self.ranks)
        return back or (forth and self.direction == "both")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> FaultRule:
        """The inverse of `_asdict`, JSON in between: lists become tuples again."""
        plain: dict[str, Any] = {k: tuple(v) if type(v) is list else v for k, v in values.items()}
        return cls(**plain)


def _among(rank: int, wanted: tuple[int, ...]) -> bool:
    return not wanted or rank in wanted

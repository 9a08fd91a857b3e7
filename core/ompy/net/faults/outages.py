"""The lasting faults of a script, as one rank has them: what nothing gets through, and until when.

The rank's middleware asks at each packet. Whoever asks over a rail on the rank's behalf (agents,
`ompy.runtime.probes`) has to lose the same, so this can be copied: rules, when the rank began, and
which packets have set something off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ompy.net.faults.fault_rules import LASTING_FAULTS, NEVER, NIC_FAULTS, FaultRule


class Outages:
    """What lasts at one rank.

    Attributes:
        fired: when rules that a packet sets off were, in ns since `began`, by index.
        began: when the rank did, on its clock.
    """

    __slots__ = ("_lasting", "_of_nics", "_rank", "_rules", "began", "fired")

    def __init__(
        self,
        rules: Sequence[FaultRule],
        rank: int,
        began: int,
        fired: Mapping[int, int] | None = None,
    ) -> None:
        self._rules = rules
        self._rank = rank
        self._lasting = [
            index
            for index, rule in enumerate(rules)
            if rule.what in LASTING_FAULTS and rule.sits_at(rank) and not rule.above
        ]
        self._of_nics = [index for index in self._lasting if rules[index].what in NIC_FAULTS]
        self.began = began
        self.fired = dict(fired or {})

    def __bool__(self) -> bool:
        """Whether there is any such rule."""
        return bool(self._lasting)

    def lasts(self, index: int, now: int) -> bool:
        """Whether what lasts does so at `now`, on the rank's clock."""
        rule = self._rules[index]
        since = now - self.began
        if not rule.triggered:
            return rule.since <= since and (rule.until == NEVER or since < rule.until)
        fired = self.fired.get(index)
        return fired is not None and (rule.lasts == NEVER or since < fired + rule.lasts)

    def down(self, index: int, rail: str, now: int) -> bool:
        """Whether a rule about NICs has that of `rail` down."""
        rule = self._rules[index]
        return (not rule.rails or rail in rule.rails) and self.lasts(index, now)

    def blocks_sending(self, receiver: int, rail: str, now: int) -> bool:
        """Whether nothing small gets from the rank to `receiver` over `rail`."""
        for index in self._lasting:
            rule = self._rules[index]
            if rule.what in NIC_FAULTS:
                if self.down(index, rail, now):
                    return True
            elif rule.concerns(self._rank, receiver, rail) and self.lasts(index, now):
                return True
        return False

    def blocks_receiving(self, rail: str, now: int) -> bool:
        """Whether nothing that comes in over `rail` gets to the rank."""
        return any(self.down(index, rail, now) for index in self._of_nics)

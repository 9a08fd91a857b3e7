"""What is said at the end of a job about the faults of its script: how often each was delivered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ompy.net.faults.fault_rules import FaultRule

NEVER_FIRED: Final = 3  # exit code of --fault-strict; arbitrary: not 1 or 2, which say other things


class FaultTally:
    """Deliveries by rule, as the ranks tell them.

    Attributes:
        rules: of the job.
        by_rank: what each rank said last.
    """

    def __init__(self, rules: Sequence[FaultRule]) -> None:
        self.rules = rules
        self.by_rank: dict[int, Sequence[int]] = {}

    def told(self, rank: int, delivered: Sequence[int]) -> None:
        """A rank says how often each rule has struck there so far."""
        self.by_rank[rank] = delivered

    def totals(self) -> list[int]:
        """Deliveries of each rule at all ranks."""
        return [
            sum(counts[index] for counts in self.by_rank.values())
            for index in range(len(self.rules))
        ]

    def by_text(self) -> dict[str, int]:
        """Deliveries of each rule at all ranks, by what the user wrote."""
        return {rule.text: n for rule, n in zip(self.rules, self.totals(), strict=True)}

    @property
    def silent(self) -> list[FaultRule]:
        """The rules that never fired."""
        return [rule for rule, total in zip(self.rules, self.totals(), strict=True) if not total]

    def lines(self, *, strict: bool) -> list[str]:
        """The report; with `strict` also that it is an error when a rule never fired."""
        if not self.rules:
            return []
        found = ["faults delivered:"]
        for rule, total in zip(self.rules, self.totals(), strict=True):
            place = "" if rule.origin.startswith("--fault") else f"  ({rule.origin})"
            never = "" if total else "  NEVER FIRED"
            found.append(f"  {total:>8}  {rule.text}{place}{never}")
        if strict and self.silent:
            found.append(
                f"{len(self.silent)} fault(s) never fired, which --fault-strict does not tolerate: "
                "send more, raise the probability, or look whether rank, rail and time are right "
                "(ranks of one host talk through memory unless told otherwise: --mca btl self,tcp)"
            )
        return found

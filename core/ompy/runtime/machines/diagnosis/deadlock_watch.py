"""A job's look at ranks that sleep for long: asks them, and says that the job is to end.

What takes part in a proof is imported when a rank has slept for long: in most jobs none does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import TYPE_CHECKING, Any

from ompy.mca.reporting import Finding
from ompy.runtime.connections.control import Kind
from ompy.runtime.diagnosis.verdict import Failure
from ompy.runtime.machines.acts import Act, Find
from ompy.runtime.machines.events import Event

if TYPE_CHECKING:
    from ompy.runtime.machines.diagnosis.proving import Proof, Prover
    from ompy.runtime.machines.launcher.job_rules import JobRules


class DeadlockWatch:
    """One job's.

    Attributes:
        failure: why the job ends, once it is proven that ranks never go on.
    """

    def __init__(
        self,
        rules: JobRules,
        tell: Callable[[Kind, dict[str, Any]], Iterable[Act]],
        speaker: str,
        in_mpi: Callable[[], Set[int]],
        everybody: Callable[[], Set[int] | None],
    ) -> None:
        """Nobody sleeps.

        Args:
            rules: how the job is gone about.
            tell: says a word to all agents.
            speaker: who tells users of it.
            in_mpi: which ranks may yet wait for those that do.
            everybody: the processes that may ever come to a port; None if others may.
        """
        self.failure: Failure | None = None
        self._rules = rules
        self._tell = tell
        self._speaker = speaker
        self._in_mpi = in_mpi
        self._everybody = everybody
        self._prover: Prover | None = None
        self._over = False

    @property
    def due(self) -> float | None:
        """When `turn` is to be called, s; None: not by itself."""
        return self._prover.due if self._prover is not None and not self._over else None

    @property
    def proof(self) -> Proof | None:
        """That ranks never go on, if it is proven."""
        return self._prover.proof if self._prover is not None else None

    def stop(self) -> None:
        """The job ends for another reason."""
        self._over = True

    def told(self, event: Event, now: float) -> list[Act]:
        """A rank says how it stands; what who watches the job has asked proves nothing."""
        if event.header["question"] < 0:
            return []
        if self._prover is None:
            from ompy.runtime.machines.diagnosis.proving import Prover

            self._prover = Prover(self._rules.still_s, self._in_mpi, self._everybody)
        rank, question = event.header["rank"], event.header["question"]
        return self._go_on(self._prover, self._prover.told(rank, question, event.body, now))

    def turn(self, now: float) -> list[Act]:
        """Time has passed."""
        if self._prover is None or self._over:
            return []
        return self._go_on(self._prover, self._prover.turn(now))

    def gone(self, rank: int) -> None:
        """A rank has ended, or finalized."""
        if self._prover is not None:
            self._prover.gone(rank)

    def _go_on(self, prover: Prover, asked: frozenset[int]) -> list[Act]:
        """Ask the ranks how they stand, or end the job."""
        if prover.proof is not None:
            return self._end(prover.proof) if self.failure is None else []
        if not asked:
            return []
        told = {"question": prover.question, "ranks": sorted(asked)}
        return [*self._tell(Kind.STAND, told)]

    def _end(self, proof: Proof) -> list[Act]:
        from ompy.runtime.diagnosis.autopsy import (
            ADVICE,
            DEADLOCK,
            as_json,
            autopsy_lines,
            headline,
        )

        self.failure = Failure(DEADLOCK, headline(proof.found), advice=ADVICE)
        lines = [] if self._rules.quiet else autopsy_lines(*proof)
        text = "".join(f"{self._speaker}: {line}\n" for line in lines)
        return [Find(Finding("deadlock", text, "error", as_json(*proof)))]

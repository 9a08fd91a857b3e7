"""What a component receives when it is put to work for one rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ompy.data.errors import ERR_OTHER, MPIError
from ompy.engine.base import Engine
from ompy.frameworks.fault_tolerance.departures import Departures
from ompy.frameworks.proc import Modex, Proc
from ompy.frameworks.wireup import WireUp
from ompy.net.base import Network
from ompy.trace.sink import Trace

if TYPE_CHECKING:
    from ompy.frameworks.bml import Bml
    from ompy.frameworks.btl import BtlModule
    from ompy.frameworks.btl_base.active_messages import ActiveMessages
    from ompy.frameworks.communicator import Communicator
    from ompy.frameworks.direct import DirectLine
    from ompy.frameworks.fault_tolerance.recovery import Recovery
    from ompy.frameworks.needs import Meeting
    from ompy.frameworks.nic.base import Nic
    from ompy.frameworks.osc_base.service import Service
    from ompy.frameworks.paths.healing import HealingLimits
    from ompy.frameworks.paths.path_watch import Paths
    from ompy.frameworks.paths.rail_events import RailEvent

    N = TypeVar("N", bound=Nic)


class FindNics(Protocol):
    """Finds the devices of a class."""

    def __call__(self, _kind: type[N], _name: str = "", /) -> Sequence[N]:
        """Those of all nic components, or of the one of that name."""


def _no_nics(_kind: type[N], _name: str = "") -> Sequence[N]:
    return ()


class RankContext:
    """One rank: everything below MPI gets the rest of the world from here, by constructor.

    Attributes:
        rank: in the job: that of COMM_WORLD, but in a process that was started later.
        size: processes of the job when this one's world began; those of its world are the last.
        procs: all that are known of, by rank in the job; `procs[rank]` is this one. Of those that
            were started later, only `proc` finds any.
        world: the processes that share this one's COMM_WORLD, by rank in that.
        expects_others: BTLs are to be ready for processes of other worlds, which may be anywhere.
        growing_btls: of `btls` those that reach processes of other worlds.
        engine: drives this rank.
        network: this rank's way to the others.
        wireup: addresses of the others.
        trace: where events go.
        job_id: 8 bytes that name the job.
        job_key: 32 secret bytes only processes of the job know.
        departures: which of them have left, and who wants to hear of it.
        active_messages: receive callbacks by tag, shared by all BTL modules of the rank.
        btls: the BTL modules in use, best exclusivity first; filled when BTLs are opened.
        bml: says which of them reach whom; None until it is selected, before the PML is.
        pml_name: of the PML in use; peers must use the same.
        oversubscribed: some host of the job has more ranks than cores; all ranks say the same.
        leaves: when this rank finalizes, those who wait for it are told; not when it fails, or may.
        fails: it is known to end with an error, and the job with it: it waits for nobody.
        find_nics: the devices of a class, of all nic components or of the one named; set by who
            brings the rank up, as a rank that needs no NIC imports no nic component.
        find_paths: makes `paths`; set by who brings the rank up, and called when first needed.
        find_healing: makes `healing`; set by who brings the rank up, and called when first needed.
        path_lost: a PML calls it when a path to a peer, or to all (None), is lost, with the
            reason; set by who brings the rank up, so that users are told.
        seal: of connections between ranks, as the parameter btl_base_seal says it
            (`btl_base/sealing.py`); set by who brings the rank up.
        fails_over: the PML goes on over other rails when one breaks; set by that PML.
        rail_events: what became of rails, filled by a PML that fails over.
        tell_phase: who takes broken paths back calls it with the peer's rank, the interface and
            the new phase (`paths/healing.py`); set by who brings the rank up, where somebody
            watches.
        tell_rail: that PML calls it with an event when a path breaks and when it is healed; set by
            who brings the rank up.
        communicators: live ones, by context id.
        recovery: what it keeps so that the program survives the death of others
            (`fault_tolerance/recovery.py`); None unless mpi_ft_enable is set.
        gave_up: a collective call has failed here, with an error that the program may have caught.
        direct: what pml/direct sends over, in a world that is explored; None elsewhere.
        inquiries: what asks and answers which collective call the rank is in
            (`collectives/patience.py`), once one has waited for long.
        long_calls: those that nobody waits in (`collectives/schedule.py`), once there was one.
        windows: modules of live windows (`osc.py`).
        meetings: what all ranks enter that is no collective call (`needs.py`).
        service: hears what the rank serves others in windows (`osc_base/service.py`); None where
            nobody wants to.
    """

    direct: DirectLine | None = None
    gave_up: bool = False
    service: Service | None = None
    long_calls: Any = None

    def __init__(
        self,
        rank: int,
        procs: Sequence[Proc],
        *,
        engine: Engine,
        network: Network,
        wireup: WireUp,
        trace: Trace,
        job_id: bytes,
        job_key: bytes,
        oversubscribed: bool = False,
        hosts: int = 0,
    ) -> None:
        from ompy.frameworks.btl_base.active_messages import ActiveMessages

        self.rank = rank
        self._take_procs(procs, hosts)
        self.engine = engine
        self.network = network
        self.wireup, self.trace = wireup, trace
        self.job_id, self.job_key = job_id, job_key
        self.oversubscribed = oversubscribed
        self.leaves, self.fails = True, False
        self.active_messages: ActiveMessages = ActiveMessages()
        self.btls: list[BtlModule] = []
        self.bml: Bml | None = None
        self.pml_name = ""
        self.find_nics: FindNics = _no_nics
        self.find_paths: Callable[[], Paths] | None = None
        self._paths: Paths | None = None
        self.find_healing: Callable[[], HealingLimits] | None = None
        self._healing: HealingLimits | None = None
        self.path_lost: Callable[[Proc | None, str], object] = lambda _proc, _reason: None
        self.seal = 3  # AUTO of `btl_base/sealing.py`, which only who connects imports
        self.fails_over, self.expects_others = False, False
        self.rail_events: list[RailEvent] = []
        self.tell_rail: Callable[[RailEvent], object] = lambda _event: None
        self.tell_phase: Callable[[int, str, str], object] = lambda _peer, _rail, _phase: None
        self.communicators: dict[int, Communicator] = {}
        self.inquiries: Any = None
        self.windows: list[Any] = []
        self.meetings: list[Meeting] = []
        self.recovery: Recovery | None = None
        self._modex: dict[int, Modex] = {}

    def _take_procs(self, procs: Sequence[Proc], hosts: int) -> None:
        """The processes of the beginning, and what is known of others."""
        self.procs = list(procs)
        own = self.procs[self.rank].world
        self.world = [proc for proc in self.procs if proc.world == own]
        self.size = own + len(self.world)
        self._hosts = hosts or len({proc.node for proc in self.procs})
        self.expects_others = False
        self.growing_btls: list[BtlModule] = []
        self.departures = Departures(self.procs)

    @property
    def paths(self) -> Paths:
        """Who finds out whether a path still carries packets: the agents of the hosts."""
        if self._paths is None:
            from ompy.frameworks.paths.path_watch import Paths

            self._paths = self.find_paths() if self.find_paths is not None else Paths()
        return self._paths

    @property
    def healing(self) -> HealingLimits:
        """How broken paths are taken back."""
        if self._healing is None:
            from ompy.frameworks.paths.healing import HealingLimits

            made = self.find_healing() if self.find_healing is not None else HealingLimits()
            self._healing = made
        return self._healing

    @property
    def me(self) -> Proc:
        """This process."""
        return self.procs[self.rank]

    def proc(self, rank: int) -> Proc:
        """A process by its rank in the job; of one that was started later the wire-up is asked.

        Raises:
            MPIError: ERR_RANK, there is none.
        """
        if rank >= len(self.procs):
            for proc in self.wireup.procs_from(len(self.procs)):
                if proc.rank == len(self.procs):  # not added meanwhile, by what is told of others
                    self.procs.append(proc)
                    self.departures.known(proc)
        return self.procs[rank]

    @property
    def one_host(self) -> bool:
        """The job has no other host, so that nobody will ever be elsewhere."""
        return self._hosts == 1

    def modex(self, proc: Proc) -> Modex:
        """What `proc` published, once it has; asked of the wire-up once.

        Raises:
            MPIError: the peer has ended, or runs another PML.
        """
        known = self._modex.get(proc.rank)
        if known is None:
            known = self._modex[proc.rank] = self.wireup.lookup(proc.rank)
            theirs = known.get("pml", b"").decode()
            if theirs != self.pml_name:
                raise MPIError(
                    ERR_OTHER,
                    f"{self.me} uses pml {self.pml_name} but {proc} uses pml {theirs}: set the "
                    f"parameter pml to the same value everywhere",
                )
        return known

    def local_procs(self) -> list[Proc]:
        """The processes of this host and world, this one included, by local rank."""
        here = [proc for proc in self.world if proc.node == self.me.node]
        return sorted(here, key=lambda proc: proc.local_rank)

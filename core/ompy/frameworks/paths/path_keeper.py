"""Drives the lives of one module's paths: timers, the hosts' agents, notices, the PML.

A BTL that keeps the failover obligations (README of this folder) gives each endpoint a `KeptPath`
and says what it sees; the keeper has it do what the machine of `path_life.py` decides, by the
methods of `PathUser`. In the order in which the obligations want it, a path that breaks is

    stopped (`stop`), told of to the peer over its other rails, then to the PML, then has what was
    under way completed (`fail_open`); it is drained when `drained` says so.

What a module still has to do itself: to number what it sends by the generation, to drop what comes
of another one, to say words and to hear them.

Source: reference openmpi.md 4.15.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.frameworks.bml import has_spare
from ompy.frameworks.btl import ERROR_FATAL, ERROR_NONFATAL, BtlModule, Endpoint
from ompy.frameworks.paths.healing import HealingLimits, Phase
from ompy.frameworks.paths.path_life import (
    IN_USE,
    TRYING,
    Act,
    Do,
    Kind,
    Life,
    Opening,
    PathLife,
    Stage,
)
from ompy.frameworks.paths.path_watch import PathVerdict, PathWatch
from ompy.frameworks.paths.rail_notices import listen_for_notices, tell_of_failure

if TYPE_CHECKING:
    from ompy.engine.timers import Timer
    from ompy.frameworks.proc import Proc

LOOKS: Final = 4  # arbitrary: how often within the silence it is looked whether there is news
# what watchers of rails show of a path that was given up (`ompy.runtime.rails.rail_watch`)
PHASES: Final = {
    Life.FRESH: Phase.SOUND,
    Life.DRAINING: Phase.HOLDING,
    Life.HOLDING: Phase.HOLDING,
    Life.ASKING: Phase.ASKING,
    Life.WAITING: Phase.ASKING,
    Life.OPENING: Phase.MENDING,
    Life.AGREEING: Phase.MENDING,
    Life.PAUSING: Phase.PAUSING,
    Life.WORKING: Phase.SOUND,
    Life.DOUBTED: Phase.SOUND,
    Life.OVER: Phase.HOLDING,
}
GAVE_UP: Final = "the other end has given the path up"


class PathUser:
    """What a BTL's endpoint does for the keeper. All calls come with the rank's lock held."""

    def ends(self) -> tuple[str, str, str]:
        """Name and address of this rank's interface, address of the peer's; empty: none."""
        raise NotImplementedError

    def spare(self) -> bool:
        """While it works: there is another one to go on over, so it is better to know soon."""
        return False

    def patience(self) -> int:
        """For how many ns the agents are to ask in vain at least; 0: as the parameters say."""
        return 0

    def waits(self) -> bool:
        """An answer of the peer is due."""
        return self.open_ended()

    def progress(self) -> object:
        """What has got through so far: another value each time something has."""
        raise NotImplementedError

    def stop(self, reason: str) -> None:
        """Use nothing of the generation any more; what has been acknowledged is complete first."""
        raise NotImplementedError

    def fail_open(self) -> None:
        """Complete badly what was accepted, in its order, as far as that can be said by now."""
        raise NotImplementedError

    def drained(self) -> bool:
        """Nothing of the old generation is under way at this end."""
        return True

    def unheard(self, silence: int) -> None:
        """While it works, an answer has been due for so many ns. Called now and then."""

    def open_ended(self) -> bool:
        """Something will be completed badly."""
        raise NotImplementedError

    def renew(self, number: int) -> None:
        """Begin a generation: fresh numbers, windows, queues."""
        raise NotImplementedError

    def learn(self, payload: object) -> None:
        """Use what came with the peer's word of this generation."""

    def wanted(self) -> bool:
        """Somebody needs the path."""
        return True

    def hears_the_end(self) -> bool:
        """While it works, that the peer's process has ended comes behind all that this has said.

        Otherwise the control plane's word for it is enough to give the path up.
        """
        return False

    def tell(self, number: int) -> bool:
        """Tell the peer that a generation has failed, by means of one's own.

        Returns:
            Whether that was done. Otherwise notices go over the other rails.
        """
        return False

    def unopened(self, reason: str) -> str:
        """Why a path could not be opened, for people."""
        return reason

    def say(self, number: int, stage: Stage) -> None:
        """Send the own word; of connections: begin to connect."""
        raise NotImplementedError

    def ready(self) -> None:
        """The path can be used: send what waits."""


class KeptPath:
    """One path, and what is known of it.

    Attributes:
        life: the machine.
        endpoint: of the BTL.
        broken: why it cannot be used; empty while it can, and before it was ever wanted.
        up: it can be used.
    """

    __slots__ = (
        "_keeper",
        "_phase",
        "_progress",
        "_since",
        "_timer",
        "_watch",
        "broken",
        "endpoint",
        "life",
        "up",
        "user",
    )

    def __init__(
        self, keeper: PathKeeper, endpoint: Endpoint, user: PathUser, life: PathLife
    ) -> None:
        self._keeper = keeper
        self._timer: Timer | None = None
        self._watch: PathWatch | None = None
        self._since = 0
        self._progress: object = None
        self._phase = Phase.SOUND
        self.endpoint = endpoint
        self.user = user
        self.life = life
        self.broken = ""
        self.up = life.life in IN_USE

    # -- what a BTL sees

    def want(self) -> None:
        """Something is to be sent."""
        if self.life.life is Life.FRESH:
            self._tell(Kind.WANTED)

    def broke(self, reason: str, *, told: bool = False, final: bool = False) -> None:
        """An error, or the end of an attempt. Harmless where the path is given up already.

        Args:
            reason: in words.
            told: the peer has said so itself.
            final: another attempt to make a first connection is of no use.
        """
        if self.life.life in (*IN_USE, *TRYING, Life.FRESH):
            now, wanted = self._keeper.now(), self.user.wanted()
            acts = self.life.handle(Kind.BROKE, now, reason, told=told, final=final, wanted=wanted)
            self._do(acts)

    def word(self, number: int, stage: Stage, payload: object = None) -> bool:
        """The peer says where it is. Returns, of an offered connection, whether it was taken."""
        now, taken = self._keeper.now, False
        for _ in range(2):  # once more when the old generation is out of the way
            acts = self.life.word(number, stage, now())
            self._do(acts, payload)
            taken = any(act.what is Do.TAKE for act in acts)
            stopped = any(act.what in (Do.FAIL, Do.DROP) for act in acts)
            if taken or not stopped or self.life.life is Life.DRAINING:
                break
        return taken

    def data(self) -> None:
        """The peer sends in this generation."""
        if self.life.life in TRYING:
            self._do(self.life.data(self._keeper.now()))

    def drained(self) -> None:
        """Nothing of the old generation is left."""
        if self.life.life is Life.DRAINING:
            self._tell(Kind.DRAINED)

    def gave_up(self, number: int) -> None:
        """The peer says over another rail that a generation has failed."""
        self._do(self.life.notice(number, GAVE_UP, self._keeper.now()))

    def left(self) -> None:
        """The peer has left, or its process has ended."""
        if not self.life.parting:
            self._tell(Kind.LEFT)

    def waiting(self) -> None:
        """Something waits for the peer: look now and then whether it comes."""
        self._keeper.watch_over()

    # -- the machine

    def doubt(self) -> None:
        """Nothing has got through for long. For a BTL whose packets have timers of their own."""
        if self.life.life is Life.WORKING:
            self._tell(Kind.SILENT)

    def trust(self) -> None:
        """Something has got through."""
        if self.life.life is Life.DOUBTED:
            self._tell(Kind.HEARD)

    @property
    def verdict(self) -> PathVerdict:
        """What is known of the way to the peer by now."""
        if self.endpoint.proc.departed:
            return PathVerdict.DEAD
        return self._watch.verdict if self._watch is not None else PathVerdict.UNKNOWN

    def look(self, now: int, silence: int) -> bool:
        """Whether an answer is due; doubts the path when it has been for `silence` ns.

        A path to a process that has ended breaks, so that what waits for it ends.
        """
        departed = self.endpoint.proc.departed
        heard = self.up and self.user.hears_the_end()
        if departed and not heard and self.user.open_ended():
            self.broke(departed, told=True)
        if not self.up or not self.user.waits():
            self._since = 0
            self.trust()
            return False
        progress = self.user.progress()
        if not self._since or progress != self._progress:
            self._since, self._progress = now, progress
            self.trust()
        elif now - self._since >= silence:
            self.doubt()
            self.user.unheard(now - self._since)
        return True

    def end(self) -> None:
        """The module ends: nothing is taken back any more."""
        self._tell(Kind.ENDING)

    def close(self) -> None:
        """Nothing happens by itself any more, and nothing is sent."""
        self._no_timer()
        self._look_away()
        self.up = False

    def new_phase(self) -> str:
        """What taking a path back has come to, for people; empty: as it was."""
        before = self._phase
        if not self.life.parting:  # who leaves breaks nothing
            self._phase = PHASES[self.life.life] if self.life.told_broken else Phase.SOUND
        return "" if self._phase is before else self._phase.value

    def _tell(self, kind: Kind, reason: str = "") -> None:
        self._do(self.life.handle(kind, self._keeper.now(), reason))

    def _do(self, acts: Iterable[Act], payload: object = None) -> None:
        self.up = self.life.life in IN_USE
        self._arm()
        self._keeper.moved(self)
        for act in acts:
            match act.what:
                case Do.FAIL:
                    self._fail(act)
                case Do.DROP:
                    self.user.stop(act.reason)
                    self._drain()
                case Do.RENEW:
                    self.user.renew(self.life.number)
                case Do.LEARN | Do.TAKE:
                    self.user.learn(payload)
                case Do.SAY if self.life.stage is not None:
                    self.user.say(self.life.number, self.life.stage)
                case Do.READY if self.up:
                    self._ready()
                case Do.ASK:
                    self._ask()
                case Do.UNASK:
                    self._look_away()

    def _fail(self, act: Act) -> None:
        """In the order that the failover obligations want."""
        reason = self.user.unopened(act.reason) if act.unopened else act.reason
        self.broken = reason
        self.user.stop(reason)
        self._keeper.failed(self, act._replace(reason=reason))
        self.user.fail_open()
        self._drain()

    def _drain(self) -> None:
        if self.life.life is Life.DRAINING and self.user.drained():
            self._tell(Kind.DRAINED)

    def _ready(self) -> None:
        broken, self.broken = self.broken, ""
        self.user.ready()
        if broken and self.up:
            self._keeper.healed(self)

    # -- time

    def _arm(self) -> None:
        self._no_timer()
        if self.life.due is not None:
            delay = max(0, self.life.due - self._keeper.now())
            self._timer = self._keeper.engine.call_later(delay, self._time)

    def _time(self) -> None:
        self._timer = None
        departed = self.endpoint.proc.departed
        if departed:
            self.broke(departed, told=True)
            self.left()
        if self.life.due is not None:
            self._tell(Kind.TIME)

    def _no_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- agents

    def _ask(self) -> None:
        name, source, target = self.user.ends()
        if not source or not target:  # it goes over no network: there is nothing to ask about
            self._soon(Kind.PROVEN)
            return
        self._watch = self._keeper.ask(self, name, source, target, self._changed)
        if not self._watch.asked:  # nobody finds out
            self._look_away()
            self._soon(Kind.PROVEN)
        elif self._watch.verdict is not PathVerdict.UNKNOWN:
            self._changed()

    def _soon(self, kind: Kind) -> None:
        self._keeper.engine.call_later(0, partial(self._heard, kind, self.life.number))

    def _changed(self) -> None:
        """There is a verdict; it may come from within another module's poll, so only take note."""
        watch = self._watch
        if watch is not None:
            self._keeper.engine.call_later(0, partial(self._verdict, watch))

    def _verdict(self, watch: PathWatch) -> None:
        if watch is not self._watch:
            return
        if watch.verdict is PathVerdict.ALIVE:
            self._tell(Kind.ALIVE)
        elif watch.verdict is PathVerdict.DEAD:
            self._tell(
                Kind.DEAD, f"nothing gets through over {self.endpoint.describe()}: {watch.why}"
            )

    def _heard(self, kind: Kind, number: int) -> None:
        if self.life.number == number and self.life.life in (Life.ASKING, Life.DOUBTED, *TRYING):
            self._tell(kind)

    def _look_away(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.end()


class PathKeeper:
    """The paths of one module.

    Attributes:
        engine: of the rank.
        begun: a PML has asked for failover: broken paths are not the end, and are taken back.
        quiet: the PML knows already: all paths of a device break.
        watching: it is looked whether anything is heard from peers that owe an answer.
        paths: those that are kept, by the peer's rank.
    """

    def __init__(
        self,
        module: BtlModule,
        opening: Opening,
        silence: int,
        limits: HealingLimits | None = None,
    ) -> None:
        """Keep a module's paths.

        Args:
            module: whose.
            opening: how its ends open a generation.
            silence: ns without news, while an answer is due, until agents are asked; 0: for ever.
            limits: of healing; None: the rank's, which are read then.
        """
        self._module = module
        self._context = module.context
        self._opening = opening
        self._silence = silence
        self._limits = limits
        self._timer: Timer | None = None
        self._closed = False
        listen_for_notices(module.context)
        self.engine = module.context.engine
        self.begun = self.quiet = self.watching = False
        self.paths: dict[int, KeptPath] = {}

    def keep(self, endpoint: Endpoint, user: PathUser, number: int = 0) -> KeptPath:
        """Have a path.

        Args:
            endpoint: of the BTL.
            user: does what is decided.
            number: of the generation that works from the beginning; 0: it has to be opened.
        """
        context, peer = self._context, endpoint.proc.rank
        senior, limits = context.rank < peer, self._limits or context.healing
        life = PathLife(limits, self._opening, self.engine.random, senior=senior, number=number)
        made = self.paths[peer] = KeptPath(self, endpoint, user, life)
        return made

    def now(self) -> int:
        """The rank's clock, ns."""
        return self.engine.now()

    # -- what paths need

    def ask(
        self, path: KeptPath, name: str, source: str, target: str, changed: Callable[[], object]
    ) -> PathWatch:
        """Have the agents of both hosts ask each other over a path."""
        proc, user = path.endpoint.proc, path.user
        spare = path.life.told_broken or has_spare(proc) or user.spare()
        return self._context.paths.watch(
            proc, source, target, name, changed, failover=spare, least=user.patience()
        )

    def failed(self, path: KeptPath, act: Act) -> None:
        """A path has been given up: tell the peer over its other rails, then the PML.

        That a process has ended, or has left, the PML knows. It is told all the same when fragments
        have to be completed badly: those never come unannounced.
        """
        module, endpoint = self._module, path.endpoint
        expected = bool(path.life.parting or endpoint.proc.departed)
        told = path.user.open_ended() or not expected
        if told:
            self._note("PATH_FAILED", path, reason=act.reason)
        if act.tell_peer and not expected and not path.user.tell(path.life.number):
            tell_of_failure(module, endpoint, path.life.number, opening=self.begun)
        if told and module.error_callback is not None and not self.quiet:
            flags = ERROR_NONFATAL if self.begun and not expected else ERROR_FATAL
            module.error_callback.failed(module, flags, endpoint.proc, act.reason)
        if expected or not self.begun:
            path.left()

    def healed(self, path: KeptPath) -> None:
        """A path that was broken can be used again."""
        self._note("PATH_HEALED", path)
        if self._module.error_callback is not None:
            self._module.error_callback.healed(self._module, path.endpoint.proc)

    def _note(self, event: str, path: KeptPath, **fields: object) -> None:
        trace = self._context.trace
        if trace.active:
            name = f"btl.{self._module.name}"
            trace.record(name, event, peer=path.endpoint.proc.rank, **fields)

    def moved(self, path: KeptPath) -> None:
        """Who watches rails is told where a path is that is to be taken back."""
        phase = path.new_phase() if self.begun else ""
        if phase:
            name, _, _ = path.user.ends()
            self._context.tell_phase(path.endpoint.proc.rank, name, phase)

    def gave_up(self, proc: Proc, name: bytes, number: int) -> None:
        """A notice: the peer says that a generation of one of its paths has failed."""
        path = self.paths.get(proc.rank)
        if path is not None and self._module.path(path.endpoint) == name:
            self.given_up(path, number)

    def given_up(self, path: KeptPath, number: int) -> None:
        """The peer has given up a generation of a path; where it does not fail over, this rank."""
        if self.begun:
            path.gave_up(number)
        else:
            path.broke(GAVE_UP, told=True, final=True)

    # -- silence

    def watch_over(self) -> None:
        """Something waits for an answer: look now and then whether one comes."""
        if self._timer is None and self._silence and not self._closed:
            self._timer = self.engine.call_later(self._silence // LOOKS, self._look)
            self.watching = True

    def _look(self) -> None:
        self._timer = None
        self.watching = False
        now = self.now()
        waiting = [path.look(now, self._silence) for path in list(self.paths.values())]
        if any(waiting):
            self.watch_over()

    # -- the end

    def ending(self) -> None:
        """The module ends: nothing is taken back any more."""
        for path in self.paths.values():
            path.end()

    def close(self) -> None:
        """Nothing happens any more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for path in self.paths.values():
            path.close()

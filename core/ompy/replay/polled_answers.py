"""`Win.Test` and `Parrived`, in front of the API: what they said, and saying it again.

A no is said again. Where one said yes, the replay waits until it is true, as it does for any test:
it becomes true when the other side goes on (MPI 4.1, 4.2.2 and 12.5.2).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ompy.check.interposing import Observer, interpose_class
from ompy.mpi.errors import MPIException
from ompy.replay.events import CALLS, Completed, NotYet
from ompy.replay.looking import look_until

if TYPE_CHECKING:
    from ompy.engine.base import Engine
    from ompy.replay.follower import Follower
    from ompy.replay.recorder import Recorder

LOOKS_S: Final = 0.0002  # s; arbitrary: between two looks at what is to become true
WIN_TEST: Final = CALLS.index("Win.Test")
PARRIVED: Final = CALLS.index("Parrived")
Ask = Callable[..., bool]


def record_test(
    recorder: Recorder, call: int, number: int, places: tuple[int, ...], ask: Callable[[], Any]
) -> Any:
    """Ask, and write down whether it was a yes. An error is one: it comes again when waited for.

    Args:
        recorder: the rank's.
        call: one of `CALLS`.
        number: how many requests it is about; of Parrived the partition.
        places: of those that a yes says to be complete; empty where it is about all of them.
        ask: makes the call; says yes or no, or a tuple that begins so.

    Returns:
        What was said.
    """
    try:
        said = ask()
    except MPIException:
        recorder.write_event(Completed(recorder.prefix(), call, number, places))
        raise
    if said[0] if isinstance(said, tuple) else said:
        recorder.write_event(Completed(recorder.prefix(), call, number, places))
    else:
        recorder.write_no(NotYet(recorder.prefix(), call, number, 1))
    return said


def begin_recording_polls(observer: Observer, recorder: Recorder) -> None:
    """Write down what they say."""

    def ask(call: int, number: int, original: Ask, *arguments: Any) -> bool:
        said: bool = record_test(recorder, call, number, (), partial(original, *arguments))
        return said

    _interpose(observer, ask)


def begin_replaying_polls(observer: Observer, follower: Follower, engine: Engine) -> None:
    """Have them say what they said."""

    def ask(call: int, number: int, original: Ask, *arguments: Any) -> bool:
        event = follower.next_event(Completed(follower.prefix(), call, number, ()))
        if isinstance(event, NotYet):
            engine.progress()
            return False
        look_until(engine, partial(original, *arguments), LOOKS_S)
        return True

    _interpose(observer, ask)


def _interpose(observer: Observer, ask: Ask) -> None:
    import ompy.MPI as MPI  # noqa: PLR0402 - as programs name it

    def test(_observer: Any, _at: Any, _call: str, original: Ask, window: Any) -> bool:
        return ask(WIN_TEST, 1, original, window)

    def parrived(
        _observer: Any, _at: Any, _call: str, original: Ask, request: Any, partition: int
    ) -> bool:
        number = partition if isinstance(partition, int) and partition >= 0 else 0
        return ask(PARRIVED, number, original, request, partition)

    interpose_class(observer, MPI.Win, "Win.", {"Test": test}, None)
    interpose_class(observer, MPI.Prequest, "", {"Parrived": parrived}, None)

"""Message passing you can see through and break on purpose."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, TypeVar

    T = TypeVar("T")

__version__ = "0.1.0"
# the user wants interpreted modules, also where there are compiled ones
PURE = os.environ.get("OMPY_PURE", "") not in ("", "0")

if PURE:
    from ompy import pure

    pure.install_sources()


def run(
    main: Callable[[], Coroutine[Any, Any, T]] | Coroutine[Any, Any, T], *, debug: bool = False
) -> T:
    """Run an async program to its end on uvloop, or asyncio's own loop where there is none.

    Requests of `ompy.MPI` can be awaited in any asyncio loop; this is the quick one.

    Args:
        main: an async function without arguments, or the coroutine of one.
        debug: run the loop in its debug mode.

    Returns:
        What the program returns.
    """
    import asyncio

    from ompy.engine.loops import new_loop

    with asyncio.Runner(debug=debug, loop_factory=new_loop) as runner:
        return runner.run(main() if callable(main) else main)

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

if not PURE:
    from ompy import compiled_loader

    compiled_loader.install_finder()


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

    from ompy.engine.asyncio_loops import new_loop

    with asyncio.Runner(debug=debug, loop_factory=new_loop) as runner:
        return runner.run(main() if callable(main) else main)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext ompy`: have a notebook know `%%ompy`, which runs cells on ranks.

    Args:
        shell: IPython's.
    """
    from importlib import import_module  # the floors: nobody below is to know of the notebook

    import_module("ompy.cli.notebook.magics").register_commands(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext ompy`: end the ranks.

    Args:
        shell: IPython's.
    """
    from importlib import import_module

    import_module("ompy.cli.notebook.magics").end_commands(shell)

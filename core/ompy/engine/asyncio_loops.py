"""Which asyncio loop the engine uses: uvloop, or the standard library's where it is missing."""

from __future__ import annotations

import asyncio

from ompy.data.errors import ERR_ARG, MPIError


def new_loop(kind: str = "auto") -> asyncio.AbstractEventLoop:
    """A fresh event loop.

    Args:
        kind: `uvloop`, `asyncio`, or `auto` for uvloop where it can be imported.

    Raises:
        MPIError: ERR_ARG, when uvloop was asked for by name and is not there.
    """
    if kind in ("auto", "uvloop"):
        try:
            import uvloop
        except ImportError as problem:
            if kind == "uvloop":
                raise MPIError(
                    ERR_ARG, "engine_base_loop asks for uvloop, which cannot be imported here"
                ) from problem
        else:
            return uvloop.new_event_loop()
    return asyncio.new_event_loop()

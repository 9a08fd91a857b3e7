"""A rank of a real job that another rank ends, and that ends as a program with GASNet does."""

from __future__ import annotations

from ompy.runtime import world

from tests.sim.conduit.programs import one_ends_all


def main() -> None:
    process = world.start()
    try:
        one_ends_all(process)
    finally:
        process.finalize()
        process.context.wireup.finalized()

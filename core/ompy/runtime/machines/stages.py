"""How far a rank has come, as launcher and agents know it."""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """How far a rank has come. It never goes back."""

    STARTED = "started"
    ATTACHED = "attached"  # an MPI process has made itself known
    INITIALIZED = "initialized"  # and committed its addresses
    FINALIZED = "finalized"

"""Classes of which many instances are made and soon go: their memory is kept for the next ones.

What `@recycled` stands for in a compiled module (`compiled.py`): its last line calls `recycle`.
"""

from __future__ import annotations

from ompy import free_lists


def recycle(*kinds: type) -> None:
    """Keep memory of instances of these classes, as far as they can have it."""
    for kind in kinds:
        free_lists.keep(kind)

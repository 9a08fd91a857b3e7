"""Memory of instances that went, for the next ones of their class.

Interpreted, Python's own allocator is all there is. Compiled, `free_lists.pxd` takes this module's
place: some messages make five objects, and the allocator, its collector's lists included, takes a
tenth of their instructions.
"""

from __future__ import annotations


def keep(kind: type) -> bool:
    """Keep the memory of this class's instances; whether it is kept."""
    del kind
    return False

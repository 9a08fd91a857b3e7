"""Whether the modules on the way of a message run compiled or interpreted.

Counted on disk: nothing of them is imported, and next to nothing else.
"""

from __future__ import annotations

import os
from importlib.machinery import EXTENSION_SUFFIXES

import ompy_components

import ompy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def described() -> str:
    """For people: which form, of how many modules, and what decided it if not the installation."""
    forms = [_is_compiled(stem) for stem in hot_modules()]
    if not any(forms):
        return f"interpreted ({len(forms)} modules)"
    if ompy.PURE:
        return f"interpreted ({len(forms)} modules; OMPY_PURE is set, {sum(forms)} are compiled)"
    return f"compiled ({sum(forms)} of {len(forms)} modules)"


def hot_modules() -> Iterator[str]:
    """Paths of the modules with a declaration for Cython, without their suffix."""
    for root in (*ompy.__path__, *ompy_components.__path__):
        for directory, _, files in os.walk(root):
            for file in files:
                stem, suffix = os.path.splitext(file)
                if suffix == ".pxd" and f"{stem}.py" in files:
                    yield os.path.join(directory, stem)


def _is_compiled(stem: str) -> bool:
    return any(os.path.exists(stem + suffix) for suffix in EXTENSION_SUFFIXES)

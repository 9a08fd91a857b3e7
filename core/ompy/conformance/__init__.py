"""What a component author runs to see whether a component keeps its contract; see README.md."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ompy.conformance.btl import BtlConformance

__all__ = ["BtlConformance"]


def __getattr__(name: str) -> Any:
    """Load the kit when it is asked for: it needs pytest, which ompy itself does not."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import pytest
    except ImportError:
        raise ImportError(
            "the conformance kit needs pytest: pip install 'ompy[conformance]'"
        ) from None
    modules = {f"{__name__}.{path.stem}" for path in Path(__file__).parent.glob("[a-z]*.py")}
    pytest.register_assert_rewrite(*sorted(modules - set(sys.modules)))
    from ompy.conformance.btl import BtlConformance

    return BtlConformance

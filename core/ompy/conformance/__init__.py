"""What a component author runs to see whether a component keeps its contract; see README.md."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ompy.conformance.btl.kit import BtlConformance
    from ompy.conformance.coll.kit import CollConformance
    from ompy.conformance.hooks.kit import HookConformance
    from ompy.conformance.nic.kit import NicConformance
    from ompy.conformance.osc.kit import OscConformance
    from ompy.conformance.pml.kit import PmlConformance

__all__ = [
    "BtlConformance",
    "CollConformance",
    "HookConformance",
    "NicConformance",
    "OscConformance",
    "PmlConformance",
]
_WHERE: Final = {
    "BtlConformance": "btl.kit",
    "CollConformance": "coll.kit",
    "HookConformance": "hooks.kit",
    "NicConformance": "nic.kit",
    "OscConformance": "osc.kit",
    "PmlConformance": "pml.kit",
}


def __getattr__(name: str) -> Any:
    """Load a kit when it is asked for: it needs pytest, which ompy itself does not."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import pytest
    except ImportError:
        raise ImportError(
            "the conformance kit needs pytest: pip install 'ompy[conformance]'"
        ) from None
    folder = Path(__file__).parent
    parts = (path.relative_to(folder).with_suffix("").parts for path in folder.rglob("[a-z]*.py"))
    modules = {".".join((__name__, *part)) for part in parts}
    pytest.register_assert_rewrite(*sorted(modules - set(sys.modules)))
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)

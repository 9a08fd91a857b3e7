"""The kit for BTLs."""

from __future__ import annotations

from ompy.conformance.btl.kit import BtlConformance

__all__ = ["BtlConformance"]

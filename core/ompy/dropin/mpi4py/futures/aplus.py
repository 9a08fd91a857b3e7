"""Futures that others follow, as promises do."""

from ompy.addons.futures.chaining import ThenableFuture, catch, then

__all__ = ["ThenableFuture", "catch", "then"]

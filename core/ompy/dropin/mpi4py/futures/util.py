"""Futures made of futures."""

from ompy.addons.futures.combining import collect, compose

__all__ = ["collect", "compose"]

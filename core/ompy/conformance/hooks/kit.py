"""The whole kit for packages of hooks: what an author's test class derives from."""

from __future__ import annotations

from ompy.conformance.hooks.life import HookIdentitySuite, HookLifeSuite, HookRankSuite


class HookConformance(HookRankSuite, HookLifeSuite, HookIdentitySuite):
    """Every suite there is for life-cycle hooks.

    A test class derives from it and has a fixture `component`, which returns the module or object
    that the entry point of the group `ompy.hooks` names.
    """

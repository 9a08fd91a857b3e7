"""Options of `ompy sim` for a world whose messages are matched without packets, over pml/direct."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ompy.cli.simulating.sim import OTHERS_NETS
from ompy.mca.errors import UsageError


def direct_options(
    options: dict[str, Any], mode: str, not_with: Mapping[str, str], coll: str
) -> dict[str, Any]:
    """The options, with the components that such a world has.

    Args:
        options: of the command line.
        mode: the option that asks for such a world.
        not_with: options without meaning there, by their name in `options`.
        coll: which components of coll there are if the user names none.

    Raises:
        UsageError: an option says something of packets, or names another PML or BTL.
    """
    for name, option in not_with.items():
        if options[name] and options[name] != options["defaults"][name]:
            raise UsageError(f"{option} has no meaning with {mode}: its worlds have no packets")
    for name, value in options["mca"]:
        if name in OTHERS_NETS:
            raise UsageError(f"--mca {name} {value}: {mode} has a PML of its own, and no BTL")
    own = [("pml", "direct"), ("btl", "self")]
    if not any(name == "coll" for name, _ in options["mca"]):
        own.append(("coll", coll))
    return {**options, "mca": (*options["mca"], *own)}

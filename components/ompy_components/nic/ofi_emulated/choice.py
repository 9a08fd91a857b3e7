"""Which providers there are, as the parameters have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ompy.frameworks.nic.fabric import MrMode
from ompy.mca.component import NotAvailable
from ompy.mca.parameter import Values

from ompy_components.nic.ofi_emulated.providers import NAMES, PROVIDERS, Provider

OWN: Final = "own"  # of a parameter: as each provider has it


def chosen(values: Values) -> list[Provider]:
    """The providers.

    Raises:
        NotAvailable: a parameter says what there is not.
    """
    wanted = _words(values.providers) or NAMES
    _known("providers", wanted, NAMES)
    by_name = {provider.name: provider for provider in PROVIDERS}
    changes: dict[str, object] = {}
    if values.mr_mode:
        changes["mr_mode"] = _mr_mode(values.mr_mode)
    if values.atomics != OWN:
        changes["atomics"] = values.atomics
    if values.delivery_complete != OWN:
        changes["delivery"] = values.delivery_complete
    return [by_name[name]._replace(**changes) for name in wanted]  # type: ignore[arg-type]


def _mr_mode(text: str) -> MrMode:
    names = [name.upper() for name in _words(text)]
    if names == ["NONE"]:
        return MrMode(0)
    _known("mr_mode", names, list(MrMode.__members__))
    found = MrMode(0)
    for name in names:
        found |= MrMode[name]
    return found


def _words(text: str) -> list[str]:
    return [word for word in (piece.strip() for piece in text.split(",")) if word]


def _known(parameter: str, words: Sequence[str], known: Sequence[str]) -> None:
    for word in words:
        if word not in known:
            there = ", ".join(known)
            raise NotAvailable(
                f"nic_ofi_emulated_{parameter}: there is no {word}; there are {there}"
            )

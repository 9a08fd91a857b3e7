"""Datatypes as pickles describe them: what each was made of, down to predefined ones."""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

from typing import Any

from ompy.mpi.datatypes.datatype import Datatype


def recipe(handle: Datatype) -> tuple[Any, ...]:
    """What `recreate` makes a datatype like this one of."""
    base, combiner, params = handle.decode()
    if "datatypes" in params:
        params["datatypes"] = [_recipe_of_part(each) for each in params["datatypes"]]
    return type(handle), _recipe_of_part(base), combiner, params, handle._inner.committed


def _recipe_of_part(handle: Datatype) -> Any:
    """As `recipe`; a datatype that everybody has is its own."""
    state = handle._inner
    return handle if state is None or state.symbol else recipe(handle)


def recreate(
    cls: type[Datatype], base: Any, combiner: str, params: dict[str, Any], committed: bool
) -> Datatype:
    """A datatype as its pickle describes it."""
    fresh: list[Datatype] = []
    maker = _make_part(base, fresh)
    if "datatypes" in params:
        parts = [_make_part(each, fresh) for each in params["datatypes"]]
        params = {**params, "datatypes": parts}
    made: Datatype = getattr(maker if maker else cls, f"Create_{combiner.lower()}")(**params)
    for inner in fresh:
        inner.Free()  # nobody else has these handles
    handle = cls._adopt(made._inner)
    return handle.Commit() if committed else handle


def _make_part(part: Any, fresh: list[Datatype]) -> Datatype:
    """The datatype that `_recipe_of_part` describes; one that is made here goes into `fresh`."""
    if isinstance(part, Datatype):
        return part
    made = recreate(*part)
    fresh.append(made)
    return made

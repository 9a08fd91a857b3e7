"""Import what an entry point names and see whether it is what it says."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Final

from ompy.mca.component import Component
from ompy.mca.parameter import Parameter
from ompy.mca.plugins.component_records import ComponentRecord, State
from ompy.mca.plugins.declarations import component_fault

if TYPE_CHECKING:
    from types import ModuleType

    from ompy.mca.groups import Framework

FROZEN_IMPORT: Final = "<frozen importlib"
OURS: Final = ("ompy", "ompy_components")  # the import roots of this distribution


class LoadFailure(Exception):
    """Something an entry point names cannot be used.

    Attributes:
        state: what becomes of its record.
        reason: why, in a sentence.
        traceback: of what its import raised, empty if it raised nothing.
    """

    def __init__(self, state: State, reason: str, traceback: str = "") -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason
        self.traceback = traceback


def load_target(target: str) -> object:
    """The object at `module:attribute`, or the module itself if there is no attribute.

    Raises:
        LoadFailure: whatever the import raised, with its traceback.
    """
    module_name, _, attributes = target.partition(":")
    try:
        found: object = import_module(module_name)
        for attribute in filter(None, attributes.split(".")):
            found = getattr(found, attribute)
    except (Exception, SystemExit) as error:
        state, reason = State.BROKEN, summary(error)
        if _is_refused_declaration(error):
            state, reason = State.INCOMPATIBLE, f"its {error}"
        raise LoadFailure(state, reason, traceback_text(error)) from error
    return found


def import_ahead(module_name: str) -> ModuleType | None:
    """Import one of our modules before anybody needs it, so that forks share it.

    Returns:
        The module; None where something it needs is not installed, or is too old to have what is
        imported from it. The component it is a part of says so when it is opened.

    Raises:
        ImportError: what is missing is one of ours.
    """
    try:
        return import_module(module_name)
    except ImportError as error:
        if (error.name or "").partition(".")[0] in OURS:
            raise
        return None


def load_component(record: ComponentRecord, framework: Framework) -> Component:
    """The component a record names.

    Args:
        record: its entry point.
        framework: it is offered for.

    Raises:
        LoadFailure: it cannot be imported, or is not made for this place.
    """
    found = load_target(record.target)
    try:
        reason = component_fault(found, record, framework)
    except (Exception, SystemExit) as error:  # its attributes may be anything
        raise LoadFailure(State.BROKEN, summary(error), traceback_text(error)) from error
    if reason:
        raise LoadFailure(State.INCOMPATIBLE, reason)
    assert isinstance(found, Component)
    return found


def _is_refused_declaration(error: BaseException) -> bool:
    """Whether it was raised by `Parameter` itself: what a component declares makes no sense."""
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        frames = frames.tb_next
    return frames is not None and frames.tb_frame.f_globals.get("__name__") == Parameter.__module__


def summary(error: BaseException) -> str:
    """An exception in one line."""
    kind = type(error).__name__
    try:
        first = str(error).strip().partition("\n")[0]
    except Exception:  # it is a stranger's too
        first = ""
    return f"{kind}: {first}" if first else kind


def traceback_text(error: BaseException) -> str:
    """An exception's traceback in the component's code; empty if it is not in it at all.

    Without the frames of ours that led there, and without those of the registry's where a
    declaration was refused.
    """
    import traceback

    registry = os.path.dirname(os.path.dirname(__file__))  # all of ompy.mca
    ours = (f"{os.path.dirname(registry)}/", import_module.__code__.co_filename, FROZEN_IMPORT)
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(ours):
        frames = frames.tb_next
    told = traceback.TracebackException(type(error), error, frames)
    while told.stack and told.stack[-1].filename.startswith(f"{registry}/"):
        told.stack.pop()
    return "".join(told.format()).rstrip() if told.stack else ""

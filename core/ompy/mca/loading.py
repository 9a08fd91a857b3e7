"""Import what an entry point names and see whether it is what it says."""

from __future__ import annotations

from importlib import import_module

from ompy.mca.component import ApiVersion, Component
from ompy.mca.parameter import BASE, Parameter
from ompy.mca.records import ComponentRecord, State


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


def fetch(target: str) -> object:
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
        raise LoadFailure(State.BROKEN, summary(error), traceback_text(error)) from error
    return found


def load_component(record: ComponentRecord, api: ApiVersion) -> Component:
    """The component a record names.

    Args:
        record: its entry point.
        api: version of the framework's contract this host has.

    Raises:
        LoadFailure: it cannot be imported, or is not made for this place.
    """
    found = fetch(record.target)
    try:
        reason = _unfit(found, record, api)
    except Exception as error:
        raise LoadFailure(State.BROKEN, summary(error), traceback_text(error)) from error
    if reason:
        raise LoadFailure(State.INCOMPATIBLE, reason)
    assert isinstance(found, Component)
    return found


def _unfit(found: object, record: ComponentRecord, api: ApiVersion) -> str:
    """Why the object cannot be the record's component; empty if it can."""
    if isinstance(found, type) and issubclass(found, Component):
        return f"{record.target} is a class; an entry point names an object of it"
    if not isinstance(found, Component):
        return f"{record.target} is no ompy component but {type(found).__name__}"
    if record.name == BASE:
        return f"{BASE} is no name for a component: it stands for the framework itself"
    if (found.framework, found.name) != (record.framework, record.name):
        return f"its entry point says {record.full_name}, it says {found.framework}:{found.name}"
    return _wrong_version(found, api) or _wrong_parameters(found)


def _wrong_version(found: Component, api: ApiVersion) -> str:
    major, minor = found.api
    if major == api[0] and minor <= api[1]:
        return ""
    return (
        f"made for {found.framework} API {major}.{minor}, this is {api[0]}.{api[1]} "
        "(same major, minor not newer)"
    )


def _wrong_parameters(found: Component) -> str:
    names = [parameter.name for parameter in found.parameters if isinstance(parameter, Parameter)]
    if len(names) == len(found.parameters) and len(set(names)) == len(names):
        return ""
    return "its parameters are not Parameter objects with a name each"


def summary(error: BaseException) -> str:
    """An exception in one line."""
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def traceback_text(error: BaseException) -> str:
    """An exception's traceback, without the frames of the registry and of Python's import."""
    import traceback

    frames = error.__traceback__
    here = __file__.rpartition("/")[0]
    skipped = (f"{here}/", import_module.__code__.co_filename, "<frozen importlib")
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(skipped):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames)).rstrip()

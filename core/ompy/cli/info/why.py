"""Why a value is in force, and what became of a component."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ompy.cli.info.model import Candidate, ComponentStory, ParameterStory
from ompy.mca.errors import UsageError
from ompy.mca.parameters.settings import DEFAULT, Setting
from ompy.mca.plugins.component_records import ComponentRecord, State
from ompy.mca.registry import Registry

BY_INIT: Final = "gasnet.init takes the usable one with the highest priority"
NOT_BY_ITSELF: Final = "a job uses it only when the parameter names it"


def parameter_story(
    registry: Registry, settings: Sequence[Setting], name: str
) -> ParameterStory | None:
    """Every place that sets a parameter, and the default.

    Args:
        registry: declares it.
        settings: what the registry was made with.
        name: of the parameter, or one the user has set that is none's.

    Returns:
        None if there is no such parameter and nobody sets it.
    """
    try:
        main_name, parameter = registry.declaration(name)
    except UsageError as error:
        unknown = [setting for setting in settings if setting.name == name]
        excluded = [r for r in registry.owners(name) if r.state is State.BLOCKED]
        reason = str(error)
        if excluded and not excluded[0].in_tree:
            reason = f"{excluded[0].full_name} is {excluded[0].reason}"
            candidates = [Candidate("ignored", s.raw, str(s.origin), reason) for s in unknown]
            return ParameterStory(name, name, candidates) if unknown else None
        candidates = [Candidate("wrong", s.raw, str(s.origin), reason) for s in unknown]
        return ParameterStory(name, name, candidates) if unknown else None
    counted, ignored = registry.candidates(name)
    try:
        best = registry.variable(name)
        framework = registry.frameworks.get(main_name)
        if framework is not None and framework.api is not None:
            registry.selection(main_name)  # raises when it cannot be understood
    except UsageError as error:
        wrong = counted[0]
        reason = str(error).removeprefix(f"{wrong.origin.place}: ")  # which stands beside it
        found = [Candidate("wrong", wrong.raw, str(wrong.origin), reason)]
    else:
        found = [Candidate("used", best.text, str(best.origin))]
    found += [Candidate("lost", setting.raw, str(setting.origin)) for setting in counted[1:]]
    found += [Candidate("ignored", s.raw, str(s.origin), reason) for s, reason in ignored]
    if counted:
        found.append(Candidate("lost", parameter.text(parameter.default), str(DEFAULT)))
    return ParameterStory(main_name, name, found)


def component_stories(registry: Registry, full_names: Iterable[str]) -> list[ComponentStory]:
    """What became of components, one story for all who offer the same."""
    stories = []
    for full_name in full_names:
        offers = [record for record in registry.records if record.full_name == full_name]
        offers.sort(key=lambda record: record.state is State.SHADOWED)
        for record in offers:
            emulated = getattr(record.component, "emulated", False)
            reserved = emulated or getattr(record.component, "on_request", False)
            if reserved and not _is_named(registry, record):
                when = BY_INIT if record.framework == "conduit" else NOT_BY_ITSELF
                what = f"an emulation: {when}" if emulated else when
                record.remark = record.remark or what
        framework, name = offers[0].framework, offers[0].name
        text, source = _selection(registry, framework)
        stories.append(ComponentStory(framework, name, text, source, offers))
    return stories


def _is_named(registry: Registry, record: ComponentRecord) -> bool:
    try:
        return registry.selection(record.framework).asks_for(record.name)
    except UsageError:
        return True  # what the selection says cannot be told


def _selection(registry: Registry, framework: str) -> tuple[str, str]:
    """What the selection parameter says, and where."""
    try:
        variable = registry.variable(framework)
    except UsageError:
        return "", ""  # an unreadable distribution names no framework
    return variable.text, str(variable.origin)

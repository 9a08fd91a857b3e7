"""What a user should know about settings that are valid and do not do what they seem to.

Reference: openmpi.md 1.8.10 and 1.8.11, flags of 1.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from ompy.mca.errors import nearest
from ompy.mca.parameter import WITHOUT_MEANING, Flag, Synonym, is_known_elsewhere
from ompy.mca.parameters.settings import IMMEDIATE
from ompy.mca.plugins.component_records import ComponentRecord, State

if TYPE_CHECKING:
    from ompy.mca.parameters.settings import Setting
    from ompy.mca.parameters.variables import VariableTable


NEARLY: Final = 0.85  # arbitrary: such names begin alike, and most that are none are no mistakes


def notices(variables: VariableTable, *, overridden: bool) -> Iterator[str]:
    """A sentence for each setting that is deprecated, ignored or overridden.

    Args:
        variables: the table; only declared names are looked at.
        overridden: also tell of settings the override file wins over.
    """
    used = [name for name in variables.settings if name in variables]
    for name in dict.fromkeys(main for one in used for main in variables.main_names(one)):
        parameter = variables.get(name).parameter
        counted, ignored = variables.candidates(name)
        for setting in counted:
            yield from _deprecation(name, setting, parameter.flags, parameter.synonyms)
            if parameter.flags & Flag.WITHOUT_MEANING:
                where = f"{setting.origin.place}: {setting.name}"
                yield f"{where} is Open MPI's, and has no meaning here"
        for setting in ignored:
            yield f"{setting.origin.place}: {why_ignored(setting, parameter.flags)}"
        if overridden and counted and counted[0].origin.source == "override file":
            for setting in counted[1:]:
                if setting.origin.source != "override file":
                    yield (
                        f"{setting.origin.place}: {setting.name} is overridden by "
                        f"{counted[0].origin.place}, which sets it to {counted[0].raw!r}"
                    )


def without_effect(
    variables: VariableTable, owners: Callable[[str], list[ComponentRecord]]
) -> Iterator[str]:
    """A sentence for each setting of a component that the selection excludes.

    Of those made for this job alone: a file is for many jobs.

    Args:
        variables: the table.
        owners: tells the components a name can belong to.
    """
    for name, settings in variables.settings.items():
        blocked = [r for r in owners(name) if name not in variables and r.state is State.BLOCKED]
        for setting in settings if blocked else ():
            if setting.origin.source in IMMEDIATE:
                record = blocked[0]
                yield (
                    f"{setting.origin.place}: {name} has no effect: {record.full_name} is "
                    f"{record.reason}"
                )


def misspelt(variables: VariableTable) -> Iterator[str]:
    """A sentence for each variable of `KNOWN_ELSEWHERE` that is none here, or nearly one."""
    known = [name for name in variables if is_known_elsewhere(name)]
    for name, settings in variables.settings.items():
        if known and name not in variables and is_known_elsewhere(name):
            if name in WITHOUT_MEANING:
                what = "is GASNet's, and has no meaning here"
            elif near := nearest(name, known, NEARLY):
                what = f"sets nothing; did you mean {near}?"
            else:
                continue
            yield from (f"{setting.origin.place} {what}" for setting in settings)


def _deprecation(
    name: str, setting: Setting, flags: Flag, synonyms: tuple[Synonym, ...]
) -> Iterator[str]:
    deprecated = {synonym.name for synonym in synonyms if synonym.flags & Flag.DEPRECATED}
    if setting.name in deprecated:
        others = (synonym.name for synonym in synonyms if synonym.name not in deprecated)
        if is_known_elsewhere(setting.name):  # of all parameters that it sets
            name = next((one for one in others if is_known_elsewhere(one)), name)
        yield f"{setting.origin.place}: {setting.name} is deprecated; its name is {name} now"
    elif flags & Flag.DEPRECATED:
        yield f"{setting.origin.place}: {setting.name} is deprecated and will go away"


def why_ignored(setting: Setting, flags: Flag) -> str:
    """Why a setting that does not count has no effect, in a sentence."""
    if flags & Flag.DEFAULT_ONLY:
        return f"{setting.name} tells something and cannot be set; this is ignored"
    return (
        f"{setting.name} has no effect in a file; give it on the command line or in the environment"
    )

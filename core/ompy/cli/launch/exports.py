"""Environment variables the ranks get: of `-x`, of `-x` in files, of `mca_base_env_list`.

Reference: openmpi.md 1.9, 1.10 and 2.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ompy.cli.launch.command_line import CommandError
from ompy.mca.parameters.base_parameters import EXPORT_DELIMITER, EXPORT_LIST
from ompy.mca.parameters.settings import EXPORTS

if TYPE_CHECKING:
    from ompy.mca.registry import Registry


def common_exports(registry: Registry, options: Sequence[str]) -> list[tuple[str, str]]:
    """What parameters and files say that every program gets, the best first.

    Args:
        registry: checked.
        options: every `-x` of the command line.

    Returns:
        `NAME` or `NAME=VALUE`, each with the place it comes from.

    Raises:
        CommandError: the list and the option are mixed, which Open MPI refuses too.
    """
    import shlex

    listed = registry.variable(EXPORT_LIST)
    words = str(listed.value).split(str(registry.value(EXPORT_DELIMITER)))
    found = [(word.strip(), listed.origin.place) for word in words if word.strip()]
    if found and options:
        raise CommandError(
            f"{listed.origin.place} and -x {options[0]}: variables are exported either by "
            f"{EXPORT_LIST} or by -x"
        )
    in_files = registry.variable(EXPORTS)
    return found + [(word, in_files.origin.place) for word in shlex.split(str(in_files.value))]


def environment(
    options: Sequence[str], common: Sequence[tuple[str, str]], own: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """The variables of one program.

    Args:
        options: its `-x`; of two for one name the last wins.
        common: of `common_exports`; of two for one name the first wins.
        own: the launcher's environment, where names without a value are looked up.

    Returns:
        The variables, and a sentence for each name that the launcher does not have.

    Raises:
        CommandError: there is no name before the `=`.
    """
    found: dict[str, str] = {}
    warnings = []
    placed = [(word, place) for word, place in reversed(common)]
    for word, place in [*placed, *((word, f"-x {word}") for word in options)]:
        name, equals, value = word.partition("=")
        if not name:
            raise CommandError(f"{place}: there is no name before the = of {word}")
        if equals or name in own:
            found[name] = value if equals else own[name]
        else:
            warnings.append(f"{place}: there is no variable {name} in the environment")
    return found, warnings

"""The parameters of the registry itself, and those every framework and component has.

Reference: openmpi.md 1.3 and 1.10.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ompy.mca.enumerators import VERBOSITY, VERBOSITY_WORDS
from ompy.mca.parameter import BASE, Flag, Parameter, Scope, Synonym
from ompy.mca.parameters.parameter_files import parameter_set_directory
from ompy.mca.parameters.settings import (
    DEPRECATED_PARAM_FILES,
    EXPORTS,
    LOG_FORMAT,
    OVERRIDE_FILE,
    PARAM_FILES,
    PARAMETER_SETS,
    SEARCH_PATH,
    STRICT_PLUGINS,
    TUNE_FILES,
    default_files,
    override_file,
)
from ompy.mca.performance import PVARS
from ompy.mca.reporting import FORMATS, TEXT

if TYPE_CHECKING:
    from ompy.mca.groups import Framework

PREFIX: Final = f"mca_{BASE}_"
EXPORT_LIST: Final = "mca_base_env_list"
EXPORT_DELIMITER: Final = "mca_base_env_list_delimiter"
SHOW_LOAD_ERRORS: Final = "mca_base_component_show_load_errors"
DEADLOCK_DETECTION: Final = "mca_base_deadlock_detection"
DEADLOCK_PATIENCE: Final = "mca_base_deadlock_patience_ms"
IN_TREE_ONLY: Final = "mca_base_component_disable_dlopen"
SUPPRESS_OVERRIDE_WARNING: Final = "mca_base_suppress_override_warning"


def _own(name: str, kind: str, default: object, text: str, level: int, **rest: object) -> Parameter:
    return Parameter(name.removeprefix(PREFIX), kind, default, text, level=level, **rest)  # type: ignore[arg-type]


def _deprecated(name: str) -> tuple[Synonym, ...]:
    return (Synonym(name, Flag.DEPRECATED),)  # reference openmpi.md 1.10.1


MCA_PARAMETERS: Final = (
    _own(
        PVARS,
        "string",
        "",
        "Performance variables that ranks tell when the job ends: names separated by commas, in "
        "which * stands for anything, or all. The same as --pvars; ompy-info --pvars lists them.",
        3,
    ),
    _own(
        DEADLOCK_DETECTION,
        "bool",
        True,
        "Whether a job ends when ranks can never go on: each waits in MPI for what only another of "
        "them could do. The same as --no-deadlock-detection for false.",
        3,
    ),
    _own(
        DEADLOCK_PATIENCE,
        "uint32_t",
        250,  # arbitrary: longer than most waits, short for a person
        "How long a rank sleeps in a call before it says so to the launcher, which finds out "
        "whether it can ever go on.",
        6,
        unit="ms",
    ),
    _own(
        PARAM_FILES,
        "string",
        ",".join(default_files("~", os.environ)),
        "Parameter files, separated by commas; the left-most wins. The word none: no files.",
        2,
        flags=Flag.ENVIRONMENT_ONLY,
        synonyms=_deprecated(DEPRECATED_PARAM_FILES),
    ),
    _own(
        OVERRIDE_FILE,
        "string",
        override_file(os.environ),
        "File whose values win over all others, for whoever looks after the machine.",
        2,
        flags=Flag.DEFAULT_ONLY,
        scope=Scope.CONSTANT,
    ),
    _own(
        SUPPRESS_OVERRIDE_WARNING,
        "bool",
        False,
        "Whether nothing is said when the override file wins over a value of yours.",
        2,
    ),
    _own(
        PARAMETER_SETS,
        "string",
        "",
        "Parameter sets, separated by commas; the left-most wins. The same as --am.",
        3,
        flags=Flag.ENVIRONMENT_ONLY,
    ),
    _own(
        TUNE_FILES,
        "string",
        "",
        "Files with -mca and -x in them, separated by commas; the left-most wins. The same as "
        "--tune.",
        3,
        flags=Flag.ENVIRONMENT_ONLY,
    ),
    _own(
        SEARCH_PATH,
        "string",
        parameter_set_directory(),
        "Directories where the files of --am and --tune are looked for, separated by colons.",
        3,
        flags=Flag.ENVIRONMENT_ONLY,
    ),
    _own(
        SHOW_LOAD_ERRORS,
        "string",
        "all",
        "Of which components a job says that they could not be used: all, none, a list of "
        "framework or framework/component, or ^ and a list of those it says nothing of.",
        9,
        synonyms=_deprecated("mca_component_show_load_errors"),
    ),
    _own(
        IN_TREE_ONLY,
        "bool",
        False,
        "Whether only the components that come with ompy are used, and no installed package's.",
        9,
        synonyms=_deprecated("mca_component_disable_dlopen"),
    ),
    _own(
        STRICT_PLUGINS,
        "bool",
        False,
        "Whether a component that is broken, incompatible or shadowed, or fails when it is opened, "
        "ends the job instead of being left out. The same as --strict-plugins.",
        2,
    ),
    _own(
        LOG_FORMAT,
        "string",
        TEXT,
        "How ompy-run and the ranks write what ompy itself says. The same as --log-format.",
        2,
        choices=FORMATS,
    ),
    _own(
        EXPORT_LIST,
        "string",
        "",
        "Environment variables for the program, as NAME=VALUE or NAME, separated by "
        f"{EXPORT_DELIMITER}. The same as -x, and not to be mixed with it.",
        3,
    ),
    _own(EXPORT_DELIMITER, "string", ";", f"What separates the variables of {EXPORT_LIST}.", 3),
    _own(
        EXPORTS,
        "string",
        "",
        "Environment variables that -x in a file asks for, quoted as in a shell.",
        3,
        flags=Flag.INTERNAL,
    ),
)


def own_parameters(framework: Framework) -> dict[str, Parameter]:
    """A framework's own parameters by full name.

    One with components also has its selection, called like the framework, and its verbosity.
    """
    name = framework.name
    parameters = {}
    if framework.api is not None:
        parameters[name] = Parameter(
            name,
            "string",
            "",
            f"Components of {name} that may be used: a,b for only these, ^a,b for all but these; "
            "empty for all.",
            level=2,  # reference openmpi.md 1.3
            scope=Scope.ALL_EQ,
            flags=Flag.SETTABLE,
        )
        parameters[f"{name}_{BASE}_verbose"] = Parameter(
            "verbose",
            "int",
            VERBOSITY["error"],
            f"How much {name} tells on standard error; from component on, a line for each "
            "component that is imported, opened or closed.",
            level=8,  # reference openmpi.md 1.3
            unit="verbosity",
            scope=Scope.LOCAL,
            flags=Flag.SETTABLE,
            enumerator=VERBOSITY_WORDS,
        )
    parameters |= {f"{name}_{BASE}_{own.name}": own for own in framework.parameters}
    return parameters


def version_parameters(version: str) -> tuple[Parameter, ...]:
    """What every component tells of its version (reference openmpi.md 1.3.2)."""
    numbers = [int(part) if part.isdigit() else 0 for part in (*version.split("."), "", "")]
    return tuple(
        Parameter(
            f"{part}_version",
            "int",
            number,
            f"The {part} number of the component's version.",
            level=9,
            unit="version",
            scope=Scope.CONSTANT,
            flags=Flag.INTERNAL | Flag.DEFAULT_ONLY,
        )
        for part, number in zip(("major", "minor", "release"), numbers, strict=False)
    )

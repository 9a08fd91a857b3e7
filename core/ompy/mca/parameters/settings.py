"""What the user has set, where, and which source wins.

Sources, best first: the override file, the command line (`--mca NAME VALUE`), the environment
(`OMPY_MCA_NAME=VALUE`, and what `KNOWN_ELSEWHERE` tells of), files of `--tune`, parameter sets of
`--am`, parameter files. Of several files the left-most wins.

Reference: openmpi.md 1.7. What a file may contain is said in `ompy.mca.parameters.parameter_files`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.mca.errors import UsageError
from ompy.mca.parameter import KNOWN_ELSEWHERE
from ompy.mca.parameters import parameter_files

if TYPE_CHECKING:
    from pathlib import Path

ENVIRONMENT_PREFIX: Final = "OMPY_MCA_"
LONG_PREFIX: Final = "ompy_"  # reference openmpi.md 1.1: a name may begin with the project's

# parameters that are needed before any other, reference openmpi.md 1.10
PARAM_FILES: Final = "mca_base_param_files"
OVERRIDE_FILE: Final = "mca_base_override_param_file"
TUNE_FILES: Final = "mca_base_envar_file_prefix"
PARAMETER_SETS: Final = "mca_base_param_file_prefix"
SEARCH_PATH: Final = "mca_base_param_file_path"
EXPORTS: Final = "mca_base_env_list_internal"
STRICT_PLUGINS: Final = "mca_base_strict_plugins"
LOG_FORMAT: Final = "mca_base_log_format"
DEPRECATED_PARAM_FILES: Final = "mca_param_files"
NO_FILES: Final = "none"

SPELLINGS: Final = {
    TUNE_FILES: "--tune",
    PARAMETER_SETS: "--am",
    LOG_FORMAT: "--log-format",
}  # options that set a parameter, reference openmpi.md 1.9

SWITCHES: Final = {STRICT_PLUGINS: "--strict-plugins"}  # options that stand for a value of `1`
VARIABLES: Final = {"OMPY_STRICT_PLUGINS": STRICT_PLUGINS}  # other names in the environment

# sources a user sets something in for one job, not for all of them
IMMEDIATE: Final = ("command line", "environment")


class Origin(NamedTuple):
    """Where a value comes from.

    Attributes:
        source: `default`, `set`, `command line`, `environment`, `tune file`, `parameter set`,
            `file` or `override file`.
        detail: `--mca btl self,tcp`, `OMPY_MCA_btl`, `/home/x/.ompy/mca-params.conf:3`;
            empty for a default.
    """

    source: str
    detail: str

    def __str__(self) -> str:
        return f"{self.source} ({self.detail})" if self.detail else self.source

    @property
    def place(self) -> str:
        """Where to go and mend it, for the beginning of a message."""
        if self.source == "environment":
            return f"environment variable {self.detail}"
        return self.detail or self.source


DEFAULT: Final = Origin("default", "")


class Setting(NamedTuple):
    """One value the user gave to one name; not known to be valid.

    Attributes:
        name: full name of the parameter.
        raw: the text given.
        origin: where.
    """

    name: str
    raw: str
    origin: Origin


def default_files(home: str, environ: Mapping[str, str]) -> list[str]:
    """The parameter files that are read when the user names none: the user's, the system's."""
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    system = parameter_files.configuration_directory(environ)
    return [
        os.path.join(home, ".ompy", "mca-params.conf"),
        os.path.join(config, "ompy", "mca-params.conf"),
        os.path.join(system, "ompy-mca-params.conf"),
    ]


def override_file(environ: Mapping[str, str]) -> str:
    """The file whose values nobody can change."""
    system = parameter_files.configuration_directory(environ)
    return os.path.join(system, "ompy-mca-params-override.conf")


def gather_settings(
    command_line: Sequence[tuple[str, str]],
    environ: Mapping[str, str],
    files: Sequence[str | Path] | None = None,
    override: str | Path | None = None,
    problems: list[str] | None = None,
) -> list[Setting]:
    """Read every source, best first.

    Args:
        command_line: name and value of each `--mca`.
        environ: the environment.
        files: parameter files to read when the user names none, best first; those that do not
            exist are passed over. None for the user's and the system's, and the override file.
        override: the override file, if `files` are given.
        problems: gets what is wrong, for whoever wants what can be read in spite of it.

    Returns:
        All settings, best first.

    Raises:
        UsageError: a name has two values on the command line, or a file cannot be read or
            understood; not if `problems` is given.
    """
    found: list[str] = []
    settings = _Gathering(environ, found).all(command_line, files, override)
    if found and problems is None:
        raise UsageError(*found)
    if problems is not None:
        problems += found
    return settings


class _Gathering:
    """One run of `gather_settings`."""

    def __init__(self, environ: Mapping[str, str], problems: list[str]) -> None:
        self._environ = environ
        self._home = environ.get("HOME") or os.path.expanduser("~")
        self._problems = problems
        self._exports: list[tuple[str, str]] = []
        self._immediate: list[Setting] = []

    def all(
        self,
        command_line: Sequence[tuple[str, str]],
        files: Sequence[str | Path] | None,
        override: str | Path | None,
    ) -> list[Setting]:
        self._immediate = [
            *_command_line_settings(command_line, self._problems),
            *_environment_settings(self._environ),
        ]
        if files is None:
            override = override_file(self._environ)
        forced: list[Setting] = []
        if override is not None and os.path.exists(override):
            forced = self._read(os.fspath(override), "override file")
        settings = [*forced, *self._immediate]
        for name, source in ((TUNE_FILES, "tune file"), (PARAMETER_SETS, "parameter set")):
            for path in self._located(name):
                settings += self._read(path, source)
        for path in self._param_files(files):
            settings += self._read(path, "file")
        return [*settings, *self._exported()]

    def _named(self, *names: str) -> Setting | None:
        """The best setting of one of `names` on the command line or in the environment."""
        return next((s for s in self._immediate if s.name in names), None)

    def _read(self, path: str, source: str) -> list[Setting]:
        content = parameter_files.read_file(path, self._problems)
        self._exports += content.exports
        return [
            Setting(name.removeprefix(LONG_PREFIX), raw, Origin(source, place))
            for name, raw, place in content.assignments
        ]

    def _located(self, name: str) -> list[str]:
        """The files of `--tune` or `--am`, left-most first."""
        setting = self._named(name)
        if setting is None:
            return []
        path = self._named(SEARCH_PATH)
        directories = (
            parameter_files.split_list(path.raw, self._home, os.pathsep)
            if path
            else [parameter_files.parameter_set_directory()]
        )
        # reference openmpi.md 1.9: tune files are looked for here first, parameter sets last
        here = os.getcwd()
        directories = [here, *directories] if name == TUNE_FILES else [*directories, here]
        found = []
        for wanted in parameter_files.split_list(setting.raw, self._home):
            located = parameter_files.locate(wanted, directories)
            if located is None:
                reason = parameter_files.not_found(wanted, directories)
                self._problems.append(f"{setting.origin.place}: {reason}")
            else:
                found.append(located)
        return found

    def _param_files(self, files: Sequence[str | Path] | None) -> list[str]:
        named = self._named(PARAM_FILES, DEPRECATED_PARAM_FILES)
        if named is None:
            standard = default_files(self._home, self._environ) if files is None else files
            return [os.fspath(path) for path in standard if os.path.exists(path)]
        if named.raw.strip() == NO_FILES:
            return []
        paths = parameter_files.split_list(named.raw, self._home)
        missing = [path for path in paths if not os.path.exists(path)]
        self._problems += [f"{named.origin.place}: there is no file {path}" for path in missing]
        return [path for path in paths if path not in missing]

    def _exported(self) -> list[Setting]:
        """The `-x` of all files as one value, the best first."""
        if not self._exports:
            return []
        import shlex  # a rank never gets here

        words = shlex.join(word for word, _ in self._exports)
        places = ", ".join(dict.fromkeys(place for _, place in self._exports))
        return [Setting(EXPORTS, words, Origin("file", places))]


def _command_line_settings(pairs: Sequence[tuple[str, str]], problems: list[str]) -> list[Setting]:
    settings: dict[str, Setting] = {}
    for written, given in pairs:
        raw = given
        if len(raw) > 1 and raw[0] == raw[-1] == '"':  # reference openmpi.md 1.8.6
            raw = raw[1:-1]
        name = written.removeprefix(LONG_PREFIX)
        origin = Origin("command line", _as_option(name, written, given))
        first = settings.setdefault(name, Setting(name, raw, origin))
        if first.raw != raw:  # reference openmpi.md 1.8.7, as Open MPI 5 has it
            problems.append(
                f"{first.origin.detail} and {origin.detail}: "
                f"{name} can have one value on the command line"
            )
    return list(settings.values())


def _as_option(name: str, written: str, given: str) -> str:
    """A setting of the command line as it was most likely written."""
    if given == "1" and name in SWITCHES:
        return SWITCHES[name]
    return f"{SPELLINGS.get(name, f'--mca {written}')} {given}"


def _environment_settings(environ: Mapping[str, str]) -> list[Setting]:
    """By name; a long name comes before the short one (reference openmpi.md 1.1)."""
    settings = [
        Setting(
            key.removeprefix(ENVIRONMENT_PREFIX).removeprefix(LONG_PREFIX),
            environ[key],
            Origin("environment", key),
        )
        for key in sorted(environ)
        if key.startswith(ENVIRONMENT_PREFIX)
    ]
    settings += [
        Setting(name, environ[key], Origin("environment", key))
        for key, name in VARIABLES.items()
        if environ.get(key)
    ]
    settings += [
        Setting(key, environ[key], Origin("environment", key))
        for key in environ
        if key.startswith(tuple(KNOWN_ELSEWHERE))
    ]
    settings.sort(key=lambda setting: (setting.name, -len(setting.origin.detail)))
    return settings

"""Every declared parameter with its value, where that comes from and what it shadowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ompy.mca.errors import UsageError
from ompy.mca.parameter import Flag, Parameter, is_known_elsewhere
from ompy.mca.parameters.settings import DEFAULT, IMMEDIATE, Origin, Setting


class Variable:
    """A parameter, resolved.

    Attributes:
        name: in full, `<framework>_<component>_<parameter>`.
        framework: it belongs to.
        component: it belongs to; `base` for the framework's own.
        parameter: its declaration.
        value: valid, of the parameter's type.
        origin: where the value comes from.
        shadowed: settings of it, under any of its names, that lost, best first.
    """

    __slots__ = (
        "component",
        "framework",
        "name",
        "origin",
        "parameter",
        "shadowed",
        "value",
    )

    def __init__(
        self,
        name: str,
        framework: str,
        component: str,
        parameter: Parameter,
        value: object,
        origin: Origin,
        shadowed: tuple[Setting, ...],
    ) -> None:
        self.name = name
        self.framework = framework
        self.component = component
        self.parameter = parameter
        self.value = value
        self.origin = origin
        self.shadowed = shadowed

    def __repr__(self) -> str:
        return f"{self.name} = {self.text!r} ({self.origin})"

    @property
    def text(self) -> str:
        """The value as the user would write it; `unset` for a default that means that."""
        if self.parameter.flags & Flag.DEF_UNSET and self.origin is DEFAULT:
            return "unset"
        return self.parameter.text(self.value)

    @property
    def flags(self) -> Flag:
        """The parameter's, and `OVERRIDE` when the value comes from the override file."""
        forced = Flag.OVERRIDE if self.origin.source == "override file" else Flag.NONE
        return self.parameter.flags | forced


class VariableTable:
    """The declared parameters of one registry; each is resolved when it is first asked for.

    Attributes:
        settings: what the user set, by the name used, best first.
    """

    def __init__(self, settings: Sequence[Setting], validated: Mapping[str, object]) -> None:
        """Start with nothing declared.

        Args:
            settings: best first.
            validated: values of names that were resolved in another process, by name.
        """
        self.settings: dict[str, list[Setting]] = {}
        for setting in settings:
            self.settings.setdefault(setting.name, []).append(setting)
        # in the environment a main name comes before its synonyms, elsewhere order decides
        self._order: dict[int, int] = {}
        environment = -1
        for place, setting in enumerate(settings):
            if setting.origin.source == "environment":
                environment = place if environment < 0 else environment
                self._order[id(setting)] = environment
            else:
                self._order[id(setting)] = place
        self._frozen: set[str] = set()
        self._validated = validated
        self._declared: dict[str, tuple[str, str, Parameter]] = {}
        self._synonyms: dict[str, list[str]] = {}
        self._resolved: dict[str, Variable] = {}

    def as_read(self) -> list[tuple[str, list[Setting]]]:
        """`settings`, names in the order in which a reader of command line and files meets them."""
        blocks: dict[str, int] = {}
        for settings in self.settings.values():
            for setting in settings:
                blocks.setdefault(_block(setting)[0], len(blocks))

        def place(item: tuple[str, list[Setting]]) -> tuple[int, int]:
            block, line = _block(item[1][0])
            return blocks[block], line

        return sorted(self.settings.items(), key=place)

    def declare(self, name: str, framework: str, component: str, parameter: Parameter) -> None:
        """Add a parameter. None of its names is taken, but for those that are known elsewhere."""
        for taken in (name, *(synonym.name for synonym in parameter.synonyms)):
            assert not self.is_taken(taken), taken
        self._declared[name] = (framework, component, parameter)
        for synonym in parameter.synonyms:
            self._synonyms.setdefault(synonym.name, []).append(name)

    def is_taken(self, name: str) -> bool:
        """Whether no other parameter can have this name or synonym."""
        return name in self and not is_known_elsewhere(name)

    def __contains__(self, name: str) -> bool:
        return name in self._declared or name in self._synonyms

    def __iter__(self) -> Iterator[str]:
        """Every name there is, synonyms included."""
        yield from self._declared
        yield from self._synonyms

    def names(self, framework: str, component: str) -> list[str]:
        """Full names of what one component (or `base`) declared, in that order."""
        return [
            name for name, owner in self._declared.items() if owner[:2] == (framework, component)
        ]

    def owner(self, name: str) -> str:
        """`<framework>:<component>` that declared a name."""
        return ":".join(self._declared[self.main_name(name)][:2])

    def main_name(self, name: str) -> str:
        """The name a synonym stands for, the first of several; any other name is its own."""
        return self.main_names(name)[0]

    def main_names(self, name: str) -> list[str]:
        """The names a synonym stands for: one, but for those that are known elsewhere."""
        return self._synonyms.get(name, [name])

    def declaration(self, name: str) -> Parameter:
        """How a declared name or synonym was declared."""
        return self._declared[self.main_name(name)][2]

    def get(self, name: str) -> Variable:
        """The resolved variable of a declared name or synonym.

        Raises:
            UsageError: what the user set is no value of it, or contradicts itself.
        """
        name = self.main_name(name)
        variable = self._resolved.get(name)
        if variable is None:
            variable = self._resolved[name] = self._resolve(name)
        return variable

    def set(self, name: str, raw: str) -> Variable:
        """Give a variable a value at run time (MPI's tool interface calls this a write).

        Raises:
            UsageError: it may not be set now, or this is no value of it.
        """
        variable = self.get(name)
        if not self.is_writeable(variable):
            raise UsageError(f"{variable.name} cannot be set now: it is read-only")
        setting = Setting(variable.name, raw, Origin("set", ""))
        value = self._parsed(variable.parameter, setting)
        if variable.origin is not DEFAULT:
            old = Setting(variable.name, variable.text, variable.origin)
            variable.shadowed = (old, *variable.shadowed)
        variable.value, variable.origin = value, setting.origin
        return variable

    def is_writeable(self, variable: Variable) -> bool:
        """Whether a variable may be set now."""
        settable = bool(variable.parameter.flags & Flag.SETTABLE)
        return settable and variable.framework not in self._frozen

    def freeze(self, framework: str) -> None:
        """No variable of a framework may be set from now on (reference openmpi.md 1.3)."""
        self._frozen.add(framework)

    def changed(self) -> dict[str, object]:
        """Values of the declared variables that are not at their default, by main name."""
        set_ = (name for name in self.settings if name in self)
        names = dict.fromkeys(main for name in set_ for main in self.main_names(name))
        names |= dict.fromkeys(self._resolved)
        variables = (self.get(name) for name in names)
        return {v.name: v.value for v in variables if v.origin is not DEFAULT}

    def candidates(self, name: str) -> tuple[list[Setting], list[Setting]]:
        """What the user set for a variable under all its names, best first.

        Returns:
            The settings that count, and those that are ignored because the variable does not
            take a value from there.
        """
        name = self.main_name(name)
        parameter = self._declared[name][2]
        every = list(self.settings.get(name, ()))
        for synonym in parameter.synonyms:
            every += self.settings.get(synonym.name, ())
        every.sort(key=lambda setting: self._order[id(setting)])
        if parameter.flags & Flag.DEFAULT_ONLY:
            return [], every
        if parameter.flags & Flag.ENVIRONMENT_ONLY:
            counted = [setting for setting in every if setting.origin.source in IMMEDIATE]
            return counted, [setting for setting in every if setting not in counted]
        return every, []

    def _resolve(self, name: str) -> Variable:
        framework, component, parameter = self._declared[name]
        counted, ignored = self.candidates(name)
        if not counted:
            lost = tuple(ignored)
            return Variable(name, framework, component, parameter, parameter.default, DEFAULT, lost)
        winner = counted[0]
        for other in counted[1:]:
            if other.origin.source == "command line" == winner.origin.source:
                _refuse_two(name, winner, other)
        shadowed = (*counted[1:], *ignored)
        value = self._value(name, parameter, winner)
        return Variable(name, framework, component, parameter, value, winner.origin, shadowed)

    def _value(self, name: str, parameter: Parameter, setting: Setting) -> object:
        if name in self._validated:
            return self._validated[name]
        return self._parsed(parameter, setting)

    def _parsed(self, parameter: Parameter, setting: Setting) -> object:
        from ompy.mca.parameters.validation import parse_value

        try:
            return parse_value(parameter, setting.raw)
        except ValueError as error:
            raise UsageError(problem_text(setting, str(error))) from None


def _block(setting: Setting) -> tuple[str, int]:
    """The file, or else the source, a setting is from, and its line there."""
    source, detail = setting.origin
    path, _, line = detail.rpartition(":")
    if source in IMMEDIATE or not line.isdigit():
        return source, 0
    return path, int(line)


def _refuse_two(name: str, one: Setting, other: Setting) -> None:
    """The command line gives a variable two values under two of its names."""
    if one.raw != other.raw:
        raise UsageError(
            f"{one.origin.detail} and {other.origin.detail}: "
            f"{name} can have one value on the command line"
        )


def problem_text(setting: Setting, reason: str) -> str:
    """A sentence about a value that is wrong."""
    hint = ""
    if setting.origin.source not in IMMEDIATE and (" #" in setting.raw or " //" in setting.raw):
        hint = " (in a file a comment has a line of its own)"
    return f"{setting.origin.place}: {setting.name} cannot be {setting.raw!r}: {reason}{hint}"

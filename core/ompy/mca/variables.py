"""Every declared parameter with its value, where that comes from and what it shadowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ompy.mca.errors import UsageError
from ompy.mca.parameter import Parameter
from ompy.mca.settings import DEFAULT, Origin, Setting


class Variable:
    """A parameter, resolved.

    Attributes:
        name: in full, `<framework>_<component>_<parameter>`.
        framework: it belongs to.
        component: it belongs to; `base` for the framework's own.
        parameter: its declaration.
        value: valid, of the parameter's type.
        origin: where the value comes from.
        shadowed: settings of the same name that lost, best first.
    """

    __slots__ = ("component", "framework", "name", "origin", "parameter", "shadowed", "value")

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
        """The value as the user would write it."""
        return self.parameter.text(self.value)


class VariableTable:
    """The declared parameters of one registry; each is resolved when it is first asked for.

    Attributes:
        settings: what the user set, by name, best first.
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
        self._validated = validated
        self._declared: dict[str, tuple[str, str, Parameter]] = {}
        self._resolved: dict[str, Variable] = {}

    def declare(self, name: str, framework: str, component: str, parameter: Parameter) -> None:
        """Add a parameter. Its name is not taken."""
        assert name not in self._declared, name
        self._declared[name] = (framework, component, parameter)

    def __contains__(self, name: str) -> bool:
        return name in self._declared

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def names(self, framework: str, component: str) -> list[str]:
        """Full names of what one component (or `base`) declared, in that order."""
        return [
            name for name, owner in self._declared.items() if owner[:2] == (framework, component)
        ]

    def owner(self, name: str) -> str:
        """`<framework>:<component>` that declared a name."""
        return ":".join(self._declared[name][:2])

    def get(self, name: str) -> Variable:
        """The resolved variable of a declared name.

        Raises:
            UsageError: what the user set is no value of it.
        """
        variable = self._resolved.get(name)
        if variable is None:
            variable = self._resolved[name] = self._resolve(name)
        return variable

    def changed(self) -> dict[str, object]:
        """Values of the declared variables that the user set, by name."""
        return {name: self.get(name).value for name in self.settings if name in self._declared}

    def _resolve(self, name: str) -> Variable:
        framework, component, parameter = self._declared[name]
        candidates = self.settings.get(name)
        if not candidates:
            return Variable(name, framework, component, parameter, parameter.default, DEFAULT, ())
        winner, shadowed = candidates[0], tuple(candidates[1:])
        value = self._value(parameter, winner)
        return Variable(name, framework, component, parameter, value, winner.origin, shadowed)

    def _value(self, parameter: Parameter, setting: Setting) -> object:
        if setting.name in self._validated:
            return self._validated[setting.name]
        from ompy.mca.validation import parse

        try:
            return parse(parameter, setting.raw)
        except ValueError as error:
            raise UsageError(problem_text(setting, str(error))) from None


def problem_text(setting: Setting, reason: str) -> str:
    """A sentence about a value that is wrong."""
    hint = ""
    if setting.origin.source == "file" and (" #" in setting.raw or " //" in setting.raw):
        hint = " (in a file a comment has a line of its own)"
    return f"{setting.origin.place}: {setting.name} cannot be {setting.raw!r}: {reason}{hint}"

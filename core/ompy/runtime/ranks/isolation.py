"""Components put to work for a rank, each apart from the others' faults.

What a stranger's component raises leaves that component out, and its record says why. What one
of ours raises ends the rank: it is a defect to be seen, or an error the user can mend.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ompy.mca.component import Component, NotAvailable

if TYPE_CHECKING:
    from ompy.mca.registry import Registry

T = TypeVar("T")


def isolated(
    registry: Registry, component: Component, step: str, call: Callable[[], T]
) -> T | None:
    """What `call` returns; None when the component cannot be used, which its record says.

    Args:
        registry: where the component is open.
        component: which.
        step: what it is asked to do, as `init`.
        call: asks it.

    Raises:
        ComponentError: the user asked for the component by name.
    """
    try:
        return call()
    except NotAvailable as reason:
        registry.refuse(component, str(reason))
    except (Exception, SystemExit) as error:
        if registry.is_in_tree(component):
            raise
        registry.fail(component, step, error)
    return None


def expect(made: object, kind: type[T], component: Component) -> T:
    """`made` itself, if it is what the component has to make.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(made, kind):
        raise TypeError(f"{component.name} made no {kind.__name__} but {made!r}")
    return made

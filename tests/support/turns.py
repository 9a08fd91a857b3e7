"""A reactor that turns until something is so, or a test has waited for too long."""

from __future__ import annotations

from collections.abc import Callable

from ompy.engine.reactor import Reactor

PATIENCE = 30.0  # s; far beyond what anything takes that waits here
LOOK = 0.002  # s; how often it is looked


def run_until(reactor: Reactor, is_so: Callable[[], object], patience: float = PATIENCE) -> None:
    """Turn until `is_so` says so. What a callback raises, this raises."""
    problems: list[BaseException] = []

    def failed(_loop: Reactor, context: dict[str, BaseException]) -> None:
        problems.append(context["exception"])
        reactor.stop()

    def look() -> None:
        if is_so():
            reactor.stop()
        elif reactor.time() > late:
            failed(reactor, {"exception": TimeoutError(f"{is_so} is not so")})
        else:
            reactor.call_later(LOOK, look)

    late = reactor.time() + patience
    reactor.set_exception_handler(failed)
    look()
    reactor.run_forever()
    if problems:
        raise problems[0]

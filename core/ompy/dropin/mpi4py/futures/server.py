"""What workers run that a client has started, or that wait for one at a service."""

import getopt
import sys

_USAGE = "usage: {} [--service=NAME | --bind=HOST --port=PORT] [--info=KEY=VALUE,...]"


def main():
    """Serve the process that has spawned this one, else one that connects to a service."""
    from ompy.addons.running import run_or_abort

    run_or_abort(_serve)


def _serve():
    from ompy.addons.futures.spawned import serve_parent, serve_service

    if not serve_parent():
        serve_service(_service(sys.argv[1:]))


def _service(words):
    """What the command line says: a name, an address, or None."""
    try:
        found, others = getopt.getopt(words, "", ["bind=", "port=", "service=", "info="])
    except getopt.GetoptError as problem:
        sys.exit(f"{problem}\n{_USAGE.format('python -m mpi4py.futures.server')}")
    if others:
        sys.exit(_USAGE.format("python -m mpi4py.futures.server"))
    options = {name.removeprefix("--"): value for name, value in found}
    if "bind" in options or "port" in options:
        return options.get("bind", ""), int(options.get("port") or 0)
    return options.get("service")


if __name__ == "__main__":
    main()

"""`python -m mpi4py script`: run a program; an uncaught exception ends the whole job."""

import sys

from ompy.addons.running import run_command_line, run_or_abort, set_abort_status

__all__ = ["main", "run_command_line", "set_abort_status"]

USAGE = """\
usage: {program} [options] <pyfile> [arg] ...
   or: {program} [options] -m <mod> [arg] ...
   or: {program} [options] -c <cmd> [arg] ...
   or: {program} [options] - [arg] ..."""
OPTIONS = """\
options:
  --prefix             show install path and exit
  --version            show version number and exit
  --mpi-library        show MPI library path and exit
  --mpi-std-version    show MPI standard version and exit
  --mpi-lib-version    show MPI library version and exit
  -h|--help            show this help message and exit
  -rc <key=value,...>  set 'mpi4py.rc.key=value'"""


def main():
    """The command line."""
    arguments = list(sys.argv[1:])
    options = {}
    while arguments and arguments[0].startswith("-") and arguments[0] not in ("-m", "-c", "-"):
        _take_option(arguments, options)
    if not arguments:
        _fail("No path specified for execution")
    if arguments[0] in ("-m", "-c") and len(arguments) < 2:
        _fail(f"Argument expected for option: {arguments[0]}")
    if options:
        from mpi4py import rc

        try:
            rc(**options)
        except TypeError as problem:
            _fail(str(problem))
    run_or_abort(lambda: run_command_line(arguments))


def _take_option(arguments, options):
    """Take the first option from a command line, and obey it or note it."""
    given = arguments.pop(0)
    name, equals, value = given.lstrip("-").partition("=")
    if name in ("h", "help"):
        print(USAGE.format(program=_program()))
        print(OPTIONS)
        sys.exit(0)
    if name in _FACTS and not equals:
        print(_FACTS[name]())
        sys.exit(0)
    if name != "rc":
        _fail(f"Unknown option: {given}")
    if not equals:
        if not arguments or arguments[0].startswith("-"):
            _fail(f"Argument expected for option: {given}")
        value = arguments.pop(0)
    for entry in value.split(","):
        _note_rc(entry, options)


def _note_rc(entry, options):
    from ast import literal_eval

    name, _, value = (part.strip() for part in entry.partition("="))
    if not name or not value:
        _fail(f"Cannot parse rc option: {entry}")
    try:
        value = literal_eval({"true": "True", "false": "False"}.get(value.lower(), value))
    except (ValueError, SyntaxError):
        pass  # a text
    options[name] = value


def _quietly():
    """MPI as a module, not started."""
    from mpi4py import rc

    rc.initialize = rc.finalize = False
    from mpi4py import MPI

    return MPI


def _prefix():
    from pathlib import Path

    return str(Path(__file__).resolve().parent)


def _version():
    import mpi4py

    return f"mpi4py {mpi4py.__version__}"


def _library():
    import ompy

    return f"{ompy.__path__[0]} (Python: there is no library of C)"


def _standard():
    return "MPI {}.{}".format(*_quietly().Get_version())


def _library_version():
    return _quietly().Get_library_version()


_FACTS = {
    "prefix": _prefix,
    "version": _version,
    "mpi-library": _library,
    "mpi-std-version": _standard,
    "mpi-lib-version": _library_version,
}


def _program():
    from os.path import basename

    return f"{basename(sys.executable)} -m mpi4py"


def _fail(text):
    print(text, file=sys.stderr)
    print(USAGE.format(program=_program()), file=sys.stderr)
    print(f"Try `{_program()} -h` for more information.", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()

"""`python -m mpi4py script`: run a program; an uncaught exception ends the whole job.

    python -m mpi4py [-rc NAME=VALUE,...] FILE | -m MODULE | -c CODE [ARGUMENTS]
"""

import os
import sys

USAGE = "usage: python -m mpi4py [-rc NAME=VALUE,...] FILE | -m MODULE | -c CODE [ARGUMENTS]"


def set_abort_status(status):
    """Have the end of the interpreter end the whole job, if MPI is in use."""
    module = sys.modules.get("ompy.MPI")
    if module is not None and module.Is_initialized() and not module.Is_finalized():
        code = status if isinstance(status, int) else 0 if status is None else 1
        module._set_abort_status(code)


def run(argv):
    """Run what a command line, without the interpreter's name, asks for."""
    import runpy

    kind, what, rest = _choose(argv)
    try:
        if kind == "-m":
            sys.argv[:] = ["-m", *rest]
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        elif kind == "-c":
            sys.argv[:] = ["-c", *rest]
            sys.path.insert(0, "")
            import __main__

            exec(compile(what, "<string>", "exec"), __main__.__dict__)
        else:
            sys.argv[:] = [what, *rest]
            sys.path[0] = os.path.realpath(os.path.dirname(what))
            runpy.run_path(what, run_name="__main__")
    except SystemExit as stop:
        set_abort_status(stop.code)
        raise
    except KeyboardInterrupt:
        set_abort_status(130)
        raise
    except BaseException:
        set_abort_status(1)
        raise


def _choose(argv):
    arguments = list(argv)
    while arguments and arguments[0] in ("-rc", "--rc"):
        _set_options(arguments[1] if len(arguments) > 1 else "")
        del arguments[:2]
    if not arguments:
        sys.exit(USAGE)
    first = arguments.pop(0)
    if first in ("-m", "-c"):
        if not arguments:
            sys.exit(USAGE)
        return first, arguments.pop(0), arguments
    if first.startswith("-"):
        print(USAGE)
        sys.exit(0 if first in ("-h", "--help") else 2)
    return "", first, arguments


def _set_options(text):
    from ast import literal_eval

    from mpi4py import rc

    for pair in filter(None, text.split(",")):
        name, _, value = pair.partition("=")
        try:
            value = literal_eval({"true": "True", "false": "False"}.get(value.lower(), value))
        except (ValueError, SyntaxError):
            pass
        rc(**{name.strip(): value})


def main():
    """The command line."""
    run(sys.argv[1:])


if __name__ == "__main__":
    main()

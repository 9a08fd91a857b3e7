"""Objects of the hot modules to one shared object, with a table of them and the code that imports.

A message runs through some fifty modules. In one object their code lies side by side, they share
what they know of Python's library, and importing them opens no file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ompy.compiled_loader import OBJECT

OWN: Final = "-fvisibility=hidden"  # option of the compiler: names that no other object needs
# `create` and `execute` are a loader's two steps (PEP 451); how a module is made of its definition
# is PEP 489. A loader's `create_module` may be called again: Cython then gives the same module.
SOURCE: Final = """\
#include <Python.h>
#include <string.h>

%(declarations)s

static const struct {
    const char *name;
    PyObject *(*initialise)(void);
} modules[] = {
%(entries)s
};
enum { COUNT = sizeof modules / sizeof modules[0] };

static PyObject *names(PyObject *self, PyObject *unused) {
    PyObject *found = PyTuple_New(COUNT);
    for (Py_ssize_t at = 0; found && at < COUNT; at++) {
        PyObject *name = PyUnicode_InternFromString(modules[at].name);
        if (!name)
            Py_CLEAR(found);
        else
            PyTuple_SET_ITEM(found, at, name);
    }
    return found;
}

static PyObject *create_named(const char *name, PyObject *spec) {
    for (Py_ssize_t at = 0; at < COUNT; at++) {
        if (strcmp(name, modules[at].name))
            continue;
        PyObject *definition = modules[at].initialise();
        if (!definition || !PyObject_TypeCheck(definition, &PyModuleDef_Type))
            return definition;
        return PyModule_FromDefAndSpec((PyModuleDef *)definition, spec);
    }
    return PyErr_Format(PyExc_ImportError, "%%s is not in this object", name);
}

static PyObject *create(PyObject *self, PyObject *spec) {
    PyObject *name = PyObject_GetAttrString(spec, "name");
    const char *text = name ? PyUnicode_AsUTF8(name) : NULL;
    PyObject *made = text ? create_named(text, spec) : NULL;
    Py_XDECREF(name);
    return made;
}

static PyObject *execute(PyObject *self, PyObject *module) {
    PyModuleDef *definition = PyModule_GetDef(module);
    if (!definition || PyModule_ExecDef(module, definition))
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"names", names, METH_NOARGS, "Names of the modules, sorted."},
    {"create", create, METH_O, "The module of a spec, not executed yet."},
    {"execute", execute, METH_O, "Run a module that `create` gave."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "%(object)s", "The compiled form of modules.", 0, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_%(last)s(void) { return PyModuleDef_Init(&definition); }
"""


def entry_point(name: str) -> str:
    """Of a module, the function that Python looks for, under a name that no other module has."""
    return f"PyInit_{name.replace('_', '_1').replace('.', '_0')}"


def renaming(name: str) -> str:
    """Option of the compiler with which a module's entry point gets that name."""
    return f"-DPyInit_{name.rpartition('.')[2]}={entry_point(name)}"


def write_table(names: Iterable[str]) -> str:
    """The C of the shared object itself.

    Args:
        names: of the modules in it, dotted.
    """
    every = sorted(names)
    return SOURCE % {
        "declarations": "\n".join(f"PyMODINIT_FUNC {entry_point(name)}(void);" for name in every),
        "entries": "\n".join(f'    {{"{name}", {entry_point(name)}}},' for name in every),
        "object": OBJECT,
        "last": OBJECT.rpartition(".")[2],
    }

# The function of free_lists.py, in C, for the modules that are compiled.

cdef extern from *:
    """
    #include <string.h>
    #define OMPY_FREE_LISTS 48 /* arbitrary: twice what there is */
    #define OMPY_KEPT 128      /* arbitrary: instances of a class; as many as a window of messages has */

    typedef struct {
        PyTypeObject *kind;
        PyObject *first; /* behind its header each has the next one */
        int count;
    } ompy_free_list;

    static ompy_free_list ompy_free_lists[OMPY_FREE_LISTS];

    #define OMPY_NEXT(object) (*(PyObject **)((char *)(object) + sizeof(PyObject)))

    static inline PyObject *ompy_take(ompy_free_list *list, PyTypeObject *kind, Py_ssize_t count) {
        PyObject *found = list->first;
        if (kind != list->kind || !found) return PyType_GenericAlloc(kind, count); /* of a subclass, too */
        list->first = OMPY_NEXT(found);
        list->count--;
        memset((char *)found + sizeof(PyObject), 0, (size_t)kind->tp_basicsize - sizeof(PyObject));
        PyObject_Init(found, kind);
        if (PyType_IS_GC(kind)) PyObject_GC_Track(found);
        return found;
    }

    static inline void ompy_give(ompy_free_list *list, void *gone) {
        PyTypeObject *kind = Py_TYPE((PyObject *)gone);
        /* the collector notes in memory that a finalizer was run: a program has given the class one */
        if (kind != list->kind || list->count >= OMPY_KEPT || kind->tp_finalize) {
            if (PyType_IS_GC(kind)) PyObject_GC_Del(gone);
            else PyObject_Free(gone);
            return;
        }
        if (PyType_IS_GC(kind)) PyObject_GC_UnTrack(gone);
        OMPY_NEXT(gone) = list->first;
        list->first = (PyObject *)gone;
        list->count++;
    }

    #define OMPY_PAIR(n) \\
        static PyObject *ompy_take_##n(PyTypeObject *kind, Py_ssize_t count) { \\
            return ompy_take(&ompy_free_lists[n], kind, count); \\
        } \\
        static void ompy_give_##n(void *gone) { ompy_give(&ompy_free_lists[n], gone); }
    #define OMPY_EIGHT(n) OMPY_PAIR(n##0) OMPY_PAIR(n##1) OMPY_PAIR(n##2) OMPY_PAIR(n##3) \\
        OMPY_PAIR(n##4) OMPY_PAIR(n##5) OMPY_PAIR(n##6) OMPY_PAIR(n##7)
    /* octal numbers: 000 to 057 */
    OMPY_EIGHT(00) OMPY_EIGHT(01) OMPY_EIGHT(02) OMPY_EIGHT(03) OMPY_EIGHT(04) OMPY_EIGHT(05)

    #define OMPY_NAMES(what, n) what##n##0, what##n##1, what##n##2, what##n##3, \\
        what##n##4, what##n##5, what##n##6, what##n##7
    static const allocfunc ompy_takers[OMPY_FREE_LISTS] = {
        OMPY_NAMES(ompy_take_, 00), OMPY_NAMES(ompy_take_, 01), OMPY_NAMES(ompy_take_, 02),
        OMPY_NAMES(ompy_take_, 03), OMPY_NAMES(ompy_take_, 04), OMPY_NAMES(ompy_take_, 05)};
    static const freefunc ompy_givers[OMPY_FREE_LISTS] = {
        OMPY_NAMES(ompy_give_, 00), OMPY_NAMES(ompy_give_, 01), OMPY_NAMES(ompy_give_, 02),
        OMPY_NAMES(ompy_give_, 03), OMPY_NAMES(ompy_give_, 04), OMPY_NAMES(ompy_give_, 05)};

    /* Whether instances lie in one piece of memory of one size, and nothing of them outlives them. */
    static int ompy_is_plain(PyTypeObject *kind) {
        unsigned long hidden = 0;
    #ifdef Py_TPFLAGS_MANAGED_DICT
        hidden |= Py_TPFLAGS_MANAGED_DICT;
    #endif
    #ifdef Py_TPFLAGS_MANAGED_WEAKREF
        hidden |= Py_TPFLAGS_MANAGED_WEAKREF;
    #endif
        return !(kind->tp_flags & hidden) && !kind->tp_itemsize && !kind->tp_dictoffset
            && !kind->tp_finalize && !kind->tp_del
            && kind->tp_basicsize >= (Py_ssize_t)(sizeof(PyObject) + sizeof(PyObject *));
    }

    static int ompy_keep(PyObject *type) {
        static int used = 0;
        PyTypeObject *kind = (PyTypeObject *)type;
    #ifdef Py_GIL_DISABLED
        return 0;
    #endif
        if (used == OMPY_FREE_LISTS || !PyType_Check(type) || !ompy_is_plain(kind)) return 0;
        Py_INCREF(type);
        ompy_free_lists[used].kind = kind;
        kind->tp_alloc = ompy_takers[used];
        kind->tp_free = ompy_givers[used];
        used++;
        return 1;
    }
    """
    bint ompy_keep(object)

cdef inline bint keep(object kind):
    return ompy_keep(kind)

/* Segments over the memory of Python objects. */
#include <Python.h>

#include "../engine/engine.h"
#include "io.h"

#if PY_VERSION_HEX >= 0x030D0000
#define ENDING Py_IsFinalizing()
#else
#define ENDING _Py_IsFinalizing()
#endif

/* A segment may outlive the interpreter; its memory then ends with the process. */
static void release_object(void *object)
{
    if (!Py_IsInitialized() || ENDING) return;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)object);
    PyGILState_Release(state);
}

xs_seg *xs_seg_of_python(xs_manager *manager, int64_t start, int64_t width, int64_t itemsize,
                         const void *data, int64_t booked, void *object)
{
    PyGILState_STATE state = PyGILState_Ensure();
    Py_INCREF((PyObject *)object);
    PyGILState_Release(state);
    return xs_seg_foreign(manager, start, width, itemsize, data, booked, release_object, object);
}

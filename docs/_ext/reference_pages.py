"""The reference: every public name of `xstream`, `xstream.io` and `xstream.testing` on a page."""

from __future__ import annotations

import inspect
from types import ModuleType

import xstream as xs

#: The names of `xstream` by page, in the order in which a reader meets them.
PAGES = {
    "segments": (
        "Segments and memory",
        ("SigSeg", "Timebase", "SegmentWriter", "memory_manager", "MemoryManager", "MemoryStats",
         "MANAGER_NAMES"),
    ),
    "queries": (
        "Queries and streams",
        ("Query", "Stream", "Partition", "SCHEDULER_NAMES", "__version__"),
    ),
    "runs": (
        "Runs, statistics and recovery",
        ("Run", "OperatorStats", "OperatorCost", "KernelState", "CheckpointStats", "Recoverable",
         "Snapshot", "Rates", "OperatorRates"),
    ),
    "live": ("Live view", ("Live", "HeatMap", "Limits")),
    "kernels": (
        "Kernels",
        ("kernel", "Kernel", "compiled", "Rolling", "array_at", "grow", "prefetch"),
    ),
    "schemas": ("Schemas", ("schema", "Schema", "Scalar", "Segment", "Out")),
    "errors": (
        "Errors",
        ("XStreamError", "SigSegError", "NotAdjacentError", "TimebaseError", "SegmentRangeError",
         "DtypeError", "ManagerError", "SegmentMemoryError", "QueryError", "SchemaError",
         "GraphError", "KernelError", "OperatorError", "InputError", "MissingPackageError"),
    ),
}  # fmt: skip
#: Public names that are pages of their own, or that need no entry.
ELSEWHERE = {"io", "testing"}
#: What is no class and no function has its text here, and an example.
TEXTS = {
    "__version__": "The version of the package.",
    "MANAGER_NAMES": "The names of the memory managers, for `memory=` and `xs.memory_manager`.",
    "SCHEDULER_NAMES": "The names of the schedulers, for `Query.run`.",
    "KernelState": "The state of a kernel by the names of its arrays: `Run.state` returns it, and "
    "`Query.run(state=...)` takes it.",
    "DATAGRAM_HEADER": "The header of a datagram with a sequence number, as a dtype.",
}
EXAMPLES = {
    "MANAGER_NAMES": """
>>> xs.MANAGER_NAMES
('copy-always', 'refcount-copy', 'refcount-realloc', 'refcount-lazy')
""",
    "SCHEDULER_NAMES": """
>>> xs.SCHEDULER_NAMES
('fifo', 'fifo-slice', 'rtc', 'df')
""",
    "__version__": """
>>> len(xs.__version__.split("."))
3
""",
    "KernelState": """
>>> @xs.kernel(state={"count": np.zeros(1, np.int64)})
... def number(window, state):
...     state.count[0] += 1
...     return state.count[0]
>>> query = xs.Query()
>>> out = query.source(xs.io.array(np.zeros(8), window=4)).map(number, name="number").collect()
>>> state: dict[str, xs.KernelState] = {"number": {"count": np.array([40])}}
>>> query.run(state=state)[out]
[41, 42]
""",
    "DATAGRAM_HEADER": """
>>> xs.io.DATAGRAM_HEADER.names
('sequence', 'sample')
""",
}


def pages() -> dict[str, str]:
    """All pages of the reference by file name; an error names what is on none or unknown."""
    placed = [name for _, names in PAGES.values() for name in names]
    missing, unknown = set(xs.__all__) - {*placed, *ELSEWHERE}, set(placed) - set(xs.__all__)
    if missing or unknown:
        raise ValueError(
            f"docs/_ext/reference_pages.py: names on no page: {sorted(missing)}, "
            f"names that xstream does not have: {sorted(unknown)}"
        )
    found = {
        f"reference-{page}.md": _page(title, xs, names) for page, (title, names) in PAGES.items()
    }
    for module, title in ((xs.io, "Sources and sinks: xs.io"), (xs.testing, "Tests: xs.testing")):
        page = module.__name__.rpartition(".")[2]
        found[f"reference-{page}.md"] = _page(title, module, module.__all__)
    return found


def _page(title: str, module: ModuleType, names: tuple[str, ...] | list[str]) -> str:
    return "\n".join([f"# {title}\n", *(_entry(module, name) for name in names)])


def _entry(module: ModuleType, name: str) -> str:
    """The directives of one name, under a heading for the search and the table of contents."""
    value = getattr(module, name)
    path = f"{module.__name__}.{name}"
    if inspect.isclass(value) and not hasattr(value, "__origin__"):
        body = [f".. autoclass:: {path}", "   :members:"]
        if not issubclass(value, BaseException):
            body += [
                "   :inherited-members: dict, int, tuple, Mapping, Operator",
                "   :undoc-members:",
            ]
    elif callable(value) and name not in TEXTS:
        body = [f".. autofunction:: {path}"]
    else:
        example = EXAMPLES[name].strip().splitlines()
        body = [f".. py:data:: {path}", "", f"   {TEXTS[name]}", ""]
        body += [f"   {line}" for line in example]
    directives = "\n".join(body)
    return f"## {name}\n\n```{{eval-rst}}\n{directives}\n```\n"

"""relation: a keyed table that streams of a query read and update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xstream._native import ffi, lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator
from xstream.engine.schema import Field, Scalar, Schema, SchemaLike, schema
from xstream.errors import GraphError, SchemaError, SegmentMemoryError

__all__ = ["Lookup", "Relation", "Update", "Use", "assignments", "names_of", "relation_operator"]

ASSIGNMENTS = {
    "set": lib.XS_ASSIGN_SET, "add": lib.XS_ASSIGN_ADD, "min": lib.XS_ASSIGN_MIN,
    "max": lib.XS_ASSIGN_MAX,
}  # fmt: skip
MISSING = {
    "default": lib.XS_MISSING_DEFAULT, "drop": lib.XS_MISSING_DROP, "error": lib.XS_MISSING_ERROR,
}  # fmt: skip


def names_of(names: str | Sequence[str] | None) -> tuple[str, ...]:
    """One name or several."""
    return (names,) if isinstance(names, str) else tuple(names or ())


def assignments(values: Mapping[str, Any]) -> tuple[tuple[str, str, Any], ...]:
    """Return (value, how, field or number) of each value that an update changes."""
    if not isinstance(values, Mapping):
        raise GraphError(f"update: values are a dictionary by name, not {values!r}")
    found = []
    for name, what in values.items():
        how, source = what if isinstance(what, tuple) and len(what) == 2 else ("set", what)
        if how not in ASSIGNMENTS:
            raise GraphError(
                f"update: value {name!r} is {', '.join(ASSIGNMENTS)} of a field or a number, not "
                f"{what!r}"
            )
        found.append((name, how, source))
    return tuple(found)


@dataclass(frozen=True)
class Use:
    """The use of a relation by one stream. `key` names the stream's fields if they differ."""

    key: tuple[str, ...] | None

    def outputs(self, relation: Relation, stream: Schema) -> Schema:
        """Return the fields of the stream and those that the relation adds."""
        raise NotImplementedError

    def native(self, relation: Relation, stream: Schema, use: Any) -> list[Any]:
        """Fill in the struct for the core; return the objects that it points to."""
        raise NotImplementedError


@dataclass(frozen=True)
class Lookup(Use):
    """Adds fields of the row with the tuple's key."""

    fields: tuple[str, ...] | None = None
    missing: str = "default"
    found: str | None = None

    def __post_init__(self) -> None:
        if self.missing not in MISSING:
            raise GraphError(
                f"lookup: missing is 'default', 'drop' or 'error', not {self.missing!r}"
            )

    def outputs(self, relation: Relation, stream: Schema) -> Schema:
        flag = [] if self.found is None else [Field(self.found, Scalar("bool"))]
        added = [relation.value(name) for name in self._names(relation)]
        return relation.widened("lookup", stream, [*flag, *added])

    def _names(self, relation: Relation) -> tuple[str, ...]:
        return relation.value_names if self.fields is None else self.fields

    def native(self, relation: Relation, stream: Schema, use: Any) -> list[Any]:
        fields = ffi.new("int32_t[]", relation.positions(self._names(relation)) or 1)
        use.field, use.fields = fields, len(self._names(relation))
        use.flagged, use.missing = self.found is not None, MISSING[self.missing]
        use.removes = lib.XS_REMOVE_NEVER
        return [fields]


@dataclass(frozen=True)
class Update(Use):
    """Changes the row with the tuple's key, or removes it, and passes the tuple on."""

    values: tuple[tuple[str, str, Any], ...] | None = None
    delete: bool | str = False
    returning: tuple[str, ...] = ()

    def outputs(self, relation: Relation, stream: Schema) -> Schema:
        self._assignments(relation, stream)
        self._removes(relation, stream)
        added = [relation.value(name) for name in self.returning]
        return relation.widened("update", stream, added)

    def _wanted(self, relation: Relation, stream: Schema) -> tuple[tuple[str, str, Any], ...]:
        """Return the given values; by default those that stream and relation have in common."""
        if self.values is not None:
            return self.values
        names = {field_.name for field_ in stream}
        shared = [name for name in relation.value_names if name in names]
        if not shared and self.delete is False and relation.value_names:
            raise SchemaError(
                f"{relation.name}, update: the stream has none of the fields "
                f"{', '.join(relation.value_names)}: say which are changed, and from what"
            )
        return tuple((name, "set", name) for name in shared)

    def _assignments(self, relation: Relation, stream: Schema) -> list[Any]:
        found = []
        for name, how, source in self._wanted(relation, stream):
            target = relation.value(name).type
            assert isinstance(target, Scalar)
            real, place, given = target.slot == "float64", -1, "int64"
            number: dict[str, float] = {"i": 0}
            if isinstance(source, str):
                place = relation.place("update", stream, source)
                type_ = stream.types[place]
                given = type_.slot if isinstance(type_, Scalar) else "segment"
            elif isinstance(source, int | float | np.integer | np.floating):
                whole = isinstance(source, int | np.integer)
                given = "int64" if whole else "float64"
                number = {"f": float(source)} if real else {"i": int(source)}
            else:
                given = "segment"
            if given == "segment" or (given == "float64" and not real):
                raise SchemaError(
                    f"{relation.name}, update: {name!r} is {target}, and cannot be changed by "
                    f"{source!r}"
                )
            converted = real and given != "float64" and isinstance(source, str)
            how_number = ASSIGNMENTS[how]
            found.append(
                (relation.positions((name,))[0], how_number, real, converted, place, number)
            )
        return found

    def _removes(self, relation: Relation, stream: Schema) -> int:
        if not isinstance(self.delete, str):
            return int(lib.XS_REMOVE_ALWAYS if self.delete else lib.XS_REMOVE_NEVER)
        place = relation.place("update", stream, self.delete)
        type_ = stream.types[place]
        if not isinstance(type_, Scalar) or type_.slot == "float64":
            raise SchemaError(f"{relation.name}, update: delete names a flag, and not {type_}")
        return place

    def native(self, relation: Relation, stream: Schema, use: Any) -> list[Any]:
        found = self._assignments(relation, stream)
        assignments = ffi.new("xs_assignment[]", found or 1)
        fields = ffi.new("int32_t[]", relation.positions(self.returning) or 1)
        use.updates, use.removes = 1, self._removes(relation, stream)
        use.assignment, use.assignments = assignments, len(found)
        use.field, use.fields = fields, len(self.returning)
        return [assignments, fields]


@dataclass(frozen=True, eq=False)
class Relation(Operator):
    """The table and all its uses: one operator with an input and an output for each.

    This gives the uses a defined order under every scheduler (Linear Road thesis, sections 5.2 to
    5.4): a single use is served in the order of arrival, several in the order of the field
    `order`, which does not descend in any stream, and for equal values in the order in which the
    uses were declared.
    """

    kind = "relation"
    variadic = True
    outputs_optional = True
    name: str
    rows: Schema
    key: tuple[str, ...]
    order: str | None = None
    contents: NDArray[np.int64] = field(repr=False, kw_only=True)
    uses: tuple[Use, ...] = ()

    @property
    def label(self) -> str:
        return self.name

    def port_name(self, port: int) -> str:
        kind = type(self.uses[port]).__name__.lower()
        return f"{kind} {port}" if len(self.uses) > 1 else kind

    # -- declaring ---------------------------------------------------------------------------

    @property
    def value_names(self) -> tuple[str, ...]:
        """The fields that are not the key."""
        return tuple(field_.name for field_ in self.rows if field_.name not in self.key)

    def value(self, name: str) -> Field:
        """A field that is not part of the key."""
        for field_ in self.rows:
            if field_.name == name and name in self.value_names:
                return field_
        raise SchemaError(
            f"{self.name}: no value is called {name!r} among {', '.join(self.value_names)}"
        )

    def positions(self, names: Sequence[str]) -> list[int]:
        """Return the positions of values in a row, counted after its key."""
        return [self.value_names.index(self.value(name).name) for name in names]

    def place(self, what: str, stream: Schema, name: str) -> int:
        """Return the position of a stream's field."""
        names = [field_.name for field_ in stream]
        if name not in names:
            raise SchemaError(
                f"{self.name}, {what}: no field is called {name!r} among {', '.join(names)}"
            )
        return names.index(name)

    def widened(self, what: str, stream: Schema, added: list[Field]) -> Schema:
        """Return the fields of a stream and additional ones, whose names must be new."""
        for field_ in added:
            if any(field_.name == own.name for own in stream):
                raise SchemaError(
                    f"{self.name}, {what}: the stream has a field {field_.name!r} already"
                )
        return Schema((*stream.fields, *added))

    def used(self, use: Use) -> Relation:
        """Return the relation with one more use."""
        if self.uses and self.order is None:
            raise GraphError(
                f"{self.name}: a second operator uses the relation, and the order of their tuples "
                "is not defined: name the field that orders them with q.relation(..., order=...)"
            )
        return replace(self, uses=(*self.uses, use))

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        for use, stream in zip(self.uses, inputs, strict=True):
            self._key_places(use, stream)
            self._order_place(use, stream)
        return tuple(
            use.outputs(self, stream) for use, stream in zip(self.uses, inputs, strict=True)
        )

    def _key_places(self, use: Use, stream: Schema) -> list[int]:
        what, names = type(use).__name__.lower(), use.key or self.key
        if len(names) != len(self.key):
            raise SchemaError(
                f"{self.name}, {what}: the key has {len(self.key)} fields "
                f"({', '.join(self.key)}), not {len(names)}"
            )
        return [self._whole(what, stream, name) for name in names]

    def _order_place(self, use: Use, stream: Schema) -> int:
        what = type(use).__name__.lower()
        return -1 if self.order is None else self._whole(what, stream, self.order)

    def _whole(self, what: str, stream: Schema, name: str) -> int:
        place = self.place(what, stream, name)
        type_ = stream.types[place]
        if not isinstance(type_, Scalar) or type_.slot == "float64":
            raise SchemaError(
                f"{self.name}, {what}: field {name!r} must be a whole number, not {type_}"
            )
        return place

    # -- in the core -------------------------------------------------------------------------

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        keys, values = len(self.key), len(self.value_names)
        op = checked(
            lib.xs_op_relation(plan.handle, keys, values, len(self.uses), self.order is not None)
        )
        for port, (use, stream) in enumerate(zip(self.uses, inputs, strict=True)):
            native = ffi.new("xs_use *")
            key = ffi.new("int32_t[]", self._key_places(use, stream))
            native.key, native.keys = key, keys
            native.order = self._order_place(use, stream)
            pointed_to = use.native(self, stream, native)
            if lib.xs_relation_use(op, port, native):
                raise SegmentMemoryError("no memory is left for the query")
            del pointed_to
        image = ffi.from_buffer("int64_t[]", self.contents.reshape(-1))
        if lib.xs_relation_fill(op, image, len(self.contents)):
            raise SegmentMemoryError(f"{self.name}: no memory is left for its contents")
        return op

    def read(self, op: Any) -> dict[str, NDArray[Any]]:
        """The rows of a run so far, as columns, sorted by key."""
        count = ffi.new("int64_t *")
        address = lib.xs_relation_rows(op, count)
        words = len(self.rows)
        table = np.zeros((count[0], words), np.int64)
        if count[0]:
            memory = ffi.buffer(address, count[0] * words * 8)
            table[:] = np.frombuffer(memory, np.int64).reshape(-1, words)
        keys = len(self.key)
        table = table[np.lexsort(table[:, :keys].T[::-1])]
        names = [*self.key, *self.value_names]
        columns = {name: np.ascontiguousarray(table[:, i]) for i, name in enumerate(names)}
        return {field_.name: _typed(columns[field_.name], field_) for field_ in self.rows}


def _typed(words: NDArray[np.int64], field_: Field) -> NDArray[Any]:
    assert isinstance(field_.type, Scalar)
    return words.view(np.float64) if field_.type.slot == "float64" else words.astype(
        field_.type.kind
    )  # fmt: skip


def relation_operator(
    name: str, fields: SchemaLike, key: str | Sequence[str], order: str | None, contents: Any
) -> Relation:
    """Return the declared relation; check its contents."""
    rows = schema(fields)
    names = (key,) if isinstance(key, str) else tuple(key)
    for field_ in rows:
        if not isinstance(field_.type, Scalar) or field_.type.narrow:
            raise SchemaError(
                f"{name}: a relation has fields of int64, float64 and bool, and {field_.name!r} is "
                f"{field_.type}"
            )
    known = {field_.name: field_.type for field_ in rows}
    for part in names:
        if part not in known or getattr(known[part], "slot", None) == "float64":
            raise SchemaError(f"{name}: key {part!r} is no field of whole numbers in {rows}")
    if not names:
        raise SchemaError(f"{name}: a relation has a key")
    values = tuple(field_.name for field_ in rows if field_.name not in names)
    table = _contents(name, rows, (*names, *values), contents)
    if len(np.unique(table[:, : len(names)], axis=0)) != len(table):
        raise SchemaError(f"{name}: two rows of the contents have the same key")
    return Relation(name, rows, names, order, contents=table)


def _contents(name: str, rows: Schema, order: tuple[str, ...], contents: Any) -> NDArray[np.int64]:
    """Return the rows as words, key first."""
    types = {field_.name: field_.type for field_ in rows}
    if contents is None:
        return np.zeros((0, len(rows)), np.int64)
    if not isinstance(contents, Mapping):
        listed = [tuple(row) for row in contents]
        if any(len(row) != len(rows) for row in listed):
            raise SchemaError(f"{name}: a row of the contents has {len(rows)} values: {rows}")
        columns = zip(*listed, strict=True) if listed else [()] * len(rows)
        contents = {field_.name: column for field_, column in zip(rows, columns, strict=True)}
    if set(contents) != set(types):
        raise SchemaError(f"{name}: the contents have the columns {', '.join(types)}")
    found = []
    for part in order:
        column = np.asarray(contents[part])
        kind = types[part].kind  # type: ignore[union-attr]
        fits = not len(column) or np.can_cast(column.dtype, kind, "same_kind")
        if column.ndim != 1 or not fits:
            raise SchemaError(f"{name}: column {part!r} of the contents is not one of {kind}")
        whole = column.astype(kind)
        found.append(whole.view(np.int64) if kind == "float64" else whole.astype(np.int64))
    if len({len(column) for column in found}) > 1:
        raise SchemaError(f"{name}: the columns of the contents differ in length")
    return np.ascontiguousarray(np.column_stack(found))

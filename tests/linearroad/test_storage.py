"""Paths and URIs: the same methods, whatever the storage."""

from __future__ import annotations

import os
import pickle
import uuid
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from linearroad.files import load_array, remove_temporaries, save_array, table_writer, whole
from linearroad.generation.manifest import file_entry, finished, read_json, write_json
from linearroad.storage import (
    RemotePath,
    local_copy,
    make_folder,
    mapped,
    place,
    readable,
    remove_tree,
    rename,
    spark_uri,
    upload,
)

from xstream.errors import InputError


@pytest.fixture(params=["folder", "uri"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder of this machine, and one of storage that this process alone sees."""
    found = tmp_path / "x" if request.param == "folder" else place(f"mock://{uuid.uuid4().hex}/x")
    make_folder(found)
    return found


def test_files_are_written_whole_listed_read_and_removed(folder: Path) -> None:
    save_array(folder / "a" / "one.npy", np.arange(5))
    with table_writer(folder / "a" / "rows.parquet", ("vid", "time"), "parquet") as writer:
        writer.write(np.arange(6, dtype=np.int32).reshape(2, 3))
    with pytest.raises(ZeroDivisionError), whole(folder / "a" / "half") as temporary:
        temporary.write_text(str(1 // 0))
    assert sorted(path.name for path in (folder / "a").iterdir()) == ["one.npy", "rows.parquet"]
    assert load_array(folder / "a" / "one.npy").tolist() == [0, 1, 2, 3, 4]
    assert pq.read_table(readable(folder / "a" / "rows.parquet"))["time"].to_pylist() == [3, 4, 5]
    assert [path.name for path in folder.glob("a/*.npy")] == ["one.npy"]
    entry = file_entry(folder, folder / "a" / "one.npy")
    assert entry["file"] == "a/one.npy"
    assert finished(folder, entry)
    remove_tree(folder / "a")
    assert not (folder / "a").exists()
    assert not finished(folder, entry)


def test_json_renames_uploads_and_copies(folder: Path, tmp_path: Path) -> None:
    write_json(folder / "one.json", {"a": 1})
    rename(folder / "one.json", folder / "two.json")
    assert read_json(folder / "two.json") == {"a": 1}
    source = tmp_path / "source"
    source.write_bytes(bytes(range(10)))
    assert upload(source, folder / "part", 3, 7) == 4
    assert mapped(folder / "part", np.uint8).tolist() == [3, 4, 5, 6]
    assert local_copy(folder / "part", tmp_path).read_bytes() == bytes([3, 4, 5, 6])
    (folder / f".part.{'0' * 32}.tmp").write_bytes(b"left")
    remove_temporaries(folder)
    assert {path.name for path in folder.iterdir()} == {"two.json", "part"}


def test_uris_keep_their_form_in_all_that_is_made_of_them() -> None:
    path = place("s3://bucket/a//b") / "c.txt"
    assert str(path) == "s3://bucket/a/b/c.txt"
    assert (path.name, path.suffix, str(path.parent)) == ("c.txt", ".txt", "s3://bucket/a/b")
    assert pickle.loads(pickle.dumps(path)) == path
    assert path.relative_to(place("s3://bucket/a")).as_posix() == "b/c.txt"
    assert spark_uri(path) == "s3a://bucket/a/b/c.txt"
    with pytest.raises(TypeError, match="is not a file of this machine"):
        os.fspath(path)


def test_a_path_is_absolute_whatever_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert place("road") == tmp_path / "road"
    assert place(f"file://{tmp_path}/road") == tmp_path / "road"
    assert spark_uri(Path("road")) == f"file://{tmp_path}/road"
    assert not isinstance(place("road"), RemotePath)


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("ftp://host/x", "ftp:// is not supported"),
        ("s3://KEY:secret@bucket/x", "must not contain credentials"),
        ("hdfs:///x", "needs a name"),
        ("file://host/x", "names a file of host"),
    ],
)
def test_a_uri_that_cannot_be_used_is_refused_without_its_secrets(uri: str, told: str) -> None:
    with pytest.raises(InputError, match=told) as error:
        place(uri)
    assert "secret" not in str(error.value)


def test_what_is_made_in_a_folder_of_a_group_is_for_the_group(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o2770)
    make_folder(shared / "a" / "b")
    assert (shared / "a" / "b").stat().st_mode & 0o7777 == 0o2770
    make_folder(tmp_path / "own")
    assert not (tmp_path / "own").stat().st_mode & 0o2020


def test_tables_of_a_uri_are_written_in_groups(folder: Path) -> None:
    with table_writer(folder / "rows.csv", ("vid", "time"), "csv") as writer:
        writer.write(np.arange(4, dtype=np.int32).reshape(2, 2))
    assert (folder / "rows.csv").read_bytes() == b"0,2\n1,3\n"

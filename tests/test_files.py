"""Files appear whole or not at all."""

import pytest

from dawnbench_tf import files
from dawnbench_tf.refusals import Refusal


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "file"
    for text in ("first", "second"):
        files.write_whole(path, text)
        assert path.read_text() == text
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "file"
    files.write_whole(path, "before")
    monkeypatch.setattr(files.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space")))
    with pytest.raises(Refusal, match=r"file: can't be written \(No space\); mend that"):
        files.write_whole(path, "after")
    assert path.read_text() == "before" and [item.name for item in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(Refusal, match="can't be written"):
        files.make_folder(tmp_path / "file" / "folder")

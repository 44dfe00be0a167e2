"""Files appear whole or not at all."""

import errno
import fcntl
import os
import subprocess
import sys

import pytest

from dawnbench_tf import files, terminal
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


def test_a_link_under_the_temporary_name_is_not_written_through(tmp_path):
    (tmp_path / "other").write_text("somebody's")
    (tmp_path / ".file.tmp").symlink_to(tmp_path / "other")
    (tmp_path / ".plot.tmp.png").symlink_to(tmp_path / "other")
    os.mkfifo(tmp_path / ".blocks.tmp")  # opening it would wait for a reader
    files.write_whole(tmp_path / "file", "ours")
    files.write_whole(tmp_path / "blocks", "ours")
    with files.renamed_to(tmp_path / "plot.png") as temporary:
        temporary.write_text("ours")
    assert (tmp_path / "other").read_text() == "somebody's"
    assert [item.read_text() for item in tmp_path.glob("[bfp]*")] == ["ours"] * 3


def test_json_is_no_larger_than_it_may_be(tmp_path):
    (tmp_path / "run.json").write_text("[" + "[]," * 10 + "1]")
    with pytest.raises(Refusal, match="should hold an object"):
        files.read_json(tmp_path / "run.json")
    os.truncate(tmp_path / "run.json", 16 * 2**20 + 1)
    with pytest.raises(Refusal, match="is larger than 16 MiB"):
        files.read_json(tmp_path / "run.json")


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_flock_is_locked_by_posix(tmp_path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    descriptor = files.lock(tmp_path, "in use")
    program = (
        f"import fcntl; fcntl.lockf(open({str(tmp_path / '.lock')!r}, 'w'), 6)"  # LOCK_EX | NB
    )
    assert subprocess.run([sys.executable, "-c", program], stderr=subprocess.DEVNULL).returncode
    os.close(descriptor)
    said = []
    monkeypatch.setattr(fcntl, "lockf", refuse)
    monkeypatch.setattr(terminal, "say", said.append)
    os.close(files.lock(tmp_path, "in use"))
    assert said == [
        f"{tmp_path}: can't be locked on this file system; start one command at a time in it"
    ]

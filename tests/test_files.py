"""Files appear whole or not at all; decompression bombs of .npz files are refused."""

import errno
import fcntl
import io
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from dawnbench_tf import files, terminal
from dawnbench_tf.refusals import Refusal


def test_a_file_is_replaced_whole_or_left_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "file"
    for text in ("first", "before"):
        files.write_whole(path, text)
    monkeypatch.setattr(files.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space")))
    with pytest.raises(Refusal, match=r"file: can't be written \(No space\); mend that"):
        files.write_whole(path, "after")
    assert path.read_text() == "before" and [item.name for item in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(Refusal, match="is a file or inside one; should be a folder"):
        files.make_folder(tmp_path / "file" / "folder")
    with pytest.raises(Refusal, match="^/proc: can't be written"):  # it is there, but takes no file
        files.make_folder(Path("/proc"))


def test_a_link_under_the_temporary_name_is_not_written_through(tmp_path):
    (tmp_path / "other").write_text("somebody's")
    (tmp_path / ".file.tmp").symlink_to(tmp_path / "other")
    (tmp_path / ".plot.tmp.png").symlink_to(tmp_path / "other")
    os.mkfifo(tmp_path / ".blocks.tmp")  # opening it would wait for a reader
    files.write_whole(tmp_path / "file", "ours")
    files.write_whole(tmp_path / "blocks", "ours")
    os.mkfifo(tmp_path / "a_pipe")
    with pytest.raises(Refusal, match="a_pipe: is no regular file; name a file"):
        files.write_json(tmp_path / "a_pipe", {})
    assert (tmp_path / "a_pipe").is_fifo()
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
    program = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'w'), 6)"  # LOCK_EX | LOCK_NB
    command = [sys.executable, "-c", program, tmp_path / ".lock"]
    assert subprocess.run(command, stderr=subprocess.DEVNULL).returncode
    os.close(descriptor)
    said = []
    monkeypatch.setattr(fcntl, "lockf", refuse)
    monkeypatch.setattr(terminal, "say", said.append)
    os.close(files.lock(tmp_path, "in use"))
    (line,) = said
    assert line.startswith(f"{tmp_path}: can't be locked on this file system; start one command")


def saved(save=np.savez, **arrays):
    content = io.BytesIO()
    save(content, **arrays)
    return content.getvalue()


def test_arrays_come_back():
    arrays = files.read_npz(saved(a=[[0, 1, 2], [3, 4, 5]], b=[b"x"]))
    assert arrays["a"].tolist() == [[0, 1, 2], [3, 4, 5]] and arrays["b"].tolist() == [b"x"]


def test_small_files_that_unpack_to_much_are_refused_before_they_are():
    with pytest.raises(ValueError, match="should not be compressed"):
        files.read_npz(saved(np.savez_compressed, a=np.zeros(2**20)))
    content = saved(a=np.zeros(2**10))
    directory = content.rfind(b"PK\x01\x02")
    entry, end = content[directory:-22], content[-22:]  # many names of one member
    many = struct.pack("<4s4H2LH", end[:4], 0, 0, 500, 500, 500 * len(entry), directory, 0)
    with zipfile.ZipFile(io.BytesIO(content[:directory] + 500 * entry + many)) as archive:
        assert len(archive.infolist()) == 500
    with pytest.raises(ValueError, match="should not be compressed"):
        files.read_npz(content[:directory] + 500 * entry + many)


@pytest.mark.parametrize("content", [b"", b"PK", saved(a=np.zeros(9))[:-30], b"(dp0\n."])
def test_damaged_files_are_one_kind_of_error(content):
    with pytest.raises(ValueError, match="it is damaged"):
        files.read_npz(content)


def test_compressed_arrays_are_read_within_a_bound():
    content = saved(np.savez_compressed, a=np.zeros(2**20))
    assert files.read_npz(content, largest=2**24)["a"].shape == (2**20,)
    with pytest.raises(ValueError, match="take 0.00781 GiB; should be at most 0.000977, a third"):
        files.read_npz(content, largest=2**20)


def test_what_is_not_damaged_is_called_by_its_name():
    objects = saved(a=np.array([None, 1]))
    with pytest.raises(ValueError, match="^it holds Python objects, not numbers"):
        files.read_npz(objects)
    alone = io.BytesIO()
    np.save(alone, np.zeros(3))
    with pytest.raises(ValueError, match="^it is an .npy file, one array; np.savez"):
        files.read_npz(alone.getvalue())
    whole = alone.getvalue()
    claims = [whole.replace(b"(3,), }".ljust(8), b"(99,), }")]
    claims += [whole.replace(b"(3,), }".ljust(19), b"(%d,), }" % 10**13)]
    for content, words in zip(
        (*claims, b"no array"), ("expected 792 bytes got 24", "", "magic string"), strict=True
    ):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("a.npy", content)
        with pytest.raises(ValueError, match=f"^it is damaged: .*{words}"):
            files.read_npz(file.getvalue())


def test_a_figure_s_texts_are_written_as_they_are(tmp_path):
    figure = Figure()
    figure.add_subplot().set(title="$x_$\x1b[2J", xlabel=r"\frac{1$2$")
    figure.text(0.1, 0.1, "李")  # a box, without a warning
    files.save_figure(figure, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert "$x_$" in text and r"\frac{1$2$" in text and "\x1b" not in text

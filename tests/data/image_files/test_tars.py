"""Damaged and hostile tar archives: refused in one line, without an endless or a complete read."""

import os
import tarfile

import pytest

from dawnbench_tf.data.image_files import tars
from dawnbench_tf.refusals import Refusal
from tests.data.image_files.conftest import tar

BELOW = "has a size below 0"  # a damaged header to Python's newer releases
IMAGE = b"\xff\xd8image\xff\xd9"


def header(name, size, kind=tarfile.REGTYPE):
    """Returns a member's header that claims a size, which may be negative."""
    member = tarfile.TarInfo(name)
    member.type = kind
    block = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    block[124:136] = (b"\x80" if size >= 0 else b"\xff") + (size % 256**11).to_bytes(11, "big")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def classes(*images):
    return tar(("a.tar", b"".join(images)))


CASES = {
    "goes back": (classes(header("1.JPEG", -512), bytes(1024)), f"1.JPEG {BELOW}|byte 512"),
    "no size": (header("a.tar", -1) + bytes(1024), f"a.tar {BELOW}|invalid offset"),
    "second": (classes(tar(("1.JPEG", IMAGE))[:1024], b"x" * 1536), "damaged header at byte 1,536"),
    "huge": (classes(header("1.JPEG", 2**60), bytes(1024)), "truncated at 1.JPEG"),
    "huge name": (header("x", 2**40, tarfile.GNUTYPE_LONGNAME) + bytes(1024), "damaged"),
    "huge header": (header("x", 2**40, tarfile.XHDTYPE) + bytes(1024), "damaged"),
    "class twice": (tar(*[("a.tar", tar(("1.JPEG", IMAGE)))] * 2), "a.tar is there twice"),
    "image twice": (classes(tar(*[("1.JPEG", IMAGE)] * 2)), "1.JPEG is there twice"),
    "control": (tar(("A\x1b[31m\n.tar", b"")), "A�\\[31m�.tar: is none of the 1 classes"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_archive_is_one_line(name, tmp_path):
    content, words = CASES[name]
    (tmp_path / "train.tar").write_bytes(content)
    with pytest.raises(Refusal, match=words) as refusal:
        tars.read(tmp_path / "train.tar", ["a"])
    assert "\n" not in str(refusal.value)


def test_a_file_too_large_for_an_image_is_refused(tmp_path):
    path = tmp_path / "train.tar"
    path.write_bytes(header("a.tar", 3 * 2**30) + header("1.JPEG", 2**31))
    os.truncate(path, 3 * 2**30 + 2048)  # sparse
    with pytest.raises(Refusal, match="1.JPEG has 2,147,483,648 bytes; should be an image"):
        tars.read(path, ["a"])


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "train.tar")
    with pytest.raises(Refusal, match="is no regular file"):
        tars.read(tmp_path / "train.tar", ["a"])


def test_links_are_no_images_and_paths_do_not_matter(tmp_path):
    link = header("0.JPEG", 0, tarfile.SYMTYPE)
    (tmp_path / "train.tar").write_bytes(classes(link, tar(("../../1.JPEG", IMAGE))))
    index = tars.read(tmp_path / "train.tar", ["a"])
    assert index.labels.tolist() == [0] and index.lengths.tolist() == [len(IMAGE)]

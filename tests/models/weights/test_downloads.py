"""Files of publishers are found, downloaded, and checked against the start of their SHA-256."""

import hashlib

import pytest

from dawnbench_tf import models
from dawnbench_tf.models.weights import downloads


@pytest.fixture
def publish(tmp_path, monkeypatch):
    """Returns a function that publishes a file for `resnet8_v1_pad`; the cache is empty."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def publish(content):
        path = tmp_path / f"resnet8-{hashlib.sha256(content).hexdigest()[:8]}.safetensors"
        path.write_bytes(content)
        monkeypatch.setitem(downloads.PUBLISHERS, "someone", {"resnet8_v1_pad": path.as_uri()})
        return path

    return publish


def test_a_file_is_downloaded_once_and_checked(publish, tmp_path):
    path = publish(b"weights")
    with pytest.raises(ValueError, match="download=True fetches file:"):
        downloads.find("someone", "resnet8_v1_pad", download=False)
    cached = downloads.find("someone", "resnet8_v1_pad", download=True)
    assert cached == tmp_path / "home/.keras/models" / path.name
    path.unlink()
    assert downloads.find("someone", "resnet8_v1_pad", download=False) == cached
    cached.write_bytes(b"other")
    with pytest.raises(ValueError, match="SHA-256 of .* should begin with"):
        downloads.find("someone", "resnet8_v1_pad", download=False)


def test_what_cannot_be_downloaded_is_said_in_a_line(publish):
    publish(b"x").unlink()
    words = "can't be downloaded .*; save it as .*home.*resnet8-"
    with pytest.raises(OSError, match=words) as refused:
        models.load_published(models.build("resnet8_v1_pad"), "someone", download=True)
    assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match="`torchvision` does not have; it has resnet18_v1, "):
        models.load_published(models.build("resnet8_v1_pad"), "torchvision")
    with pytest.raises(ValueError, match="a publisher; did you mean 'torchvision'"):
        models.load_published(models.build("resnet8_v1_pad"), "torchvison", download=True)

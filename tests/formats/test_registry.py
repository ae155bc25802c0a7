# SPDX-License-Identifier: GPL-3.0-or-later
"""Files are known by what is in them, then by their names."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mocap_addon import formats
from mocap_addon.motion.errors import FileError
from tests.formats.bvh_text import ARM_FILE
from tests.formats.test_bvh_write import random_take
from tests.paths import DATA, ROOT, SHARED, need

CONTENTS = {
    "bvh": [
        ARM_FILE.encode(),
        b"\xef\xbb\xbfHIERARCHY\n",
        b"\n\n  hierarchy\r\nROOT",
        ARM_FILE.encode("utf-16"),
        b"# made by\nHIERARCHY\n",
    ],
    "mvnx": [b'<?xml version="1.0"?>\n<mvnx version="4">', b'<ns:mvnx xmlns:ns="x">', "<?xml?><mvnx >".encode("utf-16")],
    "gltf": [b"glTF\x02\x00\x00\x00", b'{"asset": {"version": "2.0"}}', b'\xef\xbb\xbf{\n  "extensionsUsed" : []'],
}


@pytest.mark.parametrize(("name", "content"), [(n, c) for n, contents in CONTENTS.items() for c in contents])
def test_content_comes_first(tmp_path, name, content):
    for wrong in ("take.txt", "take", "take.fbx", "take.bvh", "take.mvnx"):
        path = tmp_path / wrong
        path.write_bytes(content)
        assert formats.recognise(path).name == name


def test_name_comes_second(tmp_path):
    path = tmp_path / "damaged.BVH"
    path.write_bytes(b"IERARCHY\nROOT a\n")
    assert formats.recognise(path).name == "bvh"
    with pytest.raises(FileError, match=r"damaged\.BVH, line 1: .*HIERARCHY"):
        formats.read(path)


SEEMS = {
    "FBX": b"Kaydara FBX Binary  \x00\x1a\x00",
    "Blender": b"BLENDER-v402",
    "Unity": b"%YAML 1.1\n%TAG !u!",
    "ZIP": b"PK\x03\x04\x14\x00",
    "PNG": b"\x89PNG\r\n\x1a\n",
    "JPEG": b"\xff\xd8\xff\xe0",
    "Acclaim skeleton": b":ACCLAIM\n",
    "XML": b'<?xml version="1.0"?><svg/>',
    "JSON": b'{"tracks": []}',
    "C3D": b"\x02\x50\x01\x00",
    "Git LFS": b"version https://git-lfs.github.com/spec/v1\n",
    "empty": b"",
    "empty.": b"\0" * 100,
    "text of no known kind": b"hello there\n",
    "binary data": b"\x01\x02\x00\x99",
}


@pytest.mark.parametrize("word", SEEMS)
def test_what_a_file_seems_to_be(tmp_path, word):
    path = tmp_path / "something.dat"
    path.write_bytes(SEEMS[word])
    with pytest.raises(FileError, match=word.rstrip(".")) as caught:
        formats.read(path)
    assert str(caught.value).startswith("something.dat: ") and str(caught.value).endswith(".")
    assert word.startswith("empty") or ".bvh" in str(caught.value)


def test_a_picture_named_bvh_is_still_a_picture(tmp_path):
    path = tmp_path / "walk.bvh"
    path.write_bytes(SEEMS["PNG"])
    with pytest.raises(FileError, match="PNG"):
        formats.read(path)


def test_files_that_are_not_there_and_folders(tmp_path):
    for path in (tmp_path / "missing.bvh", tmp_path):
        with pytest.raises(FileError, match="cannot be opened"):
            formats.read(path)


def test_mvnx_goes_to_its_reader():
    (take, *_) = formats.read(need(SHARED / "xsens" / "mvnx3_fullbody_240hz_4f.mvnx"))
    assert len(take.skeleton) == 23


def test_writing_needs_a_name_that_says_how(tmp_path):
    take = random_take(0)
    with pytest.raises(FileError, match=r"\.bvh"):
        formats.write(take, tmp_path / "take.xyz")
    with pytest.raises(FileError, match="only read"):
        formats.write(take, tmp_path / "take.mvnx")
    assert list(tmp_path.iterdir()) == []


def test_readers_are_imported_when_needed():
    code = "import sys; sys.path.insert(0, sys.argv[1]); import mocap_addon.formats as f; assert not any('bvh' in m for m in sys.modules);"
    code += "f.read(sys.argv[2]); assert 'mocap_addon.formats.bvh_read' in sys.modules and 'mocap_addon.formats.mvnx' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, str(ROOT), str(DATA / "takes" / "pybvh_full_precision_frame_time.bvh")], check=True)

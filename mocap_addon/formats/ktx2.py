# SPDX-License-Identifier: GPL-3.0-or-later
"""KTX2 files of uncompressed RGBA textures in float32 or float16.

Source: Khronos, KTX File Format 2.0, and Khronos Data Format 1.3 (the basic descriptor block that KTX2 asks for).
"""

from __future__ import annotations

import struct

_IDENTIFIER = b"\xabKTX 20\xbb\r\n\x1a\n"
_HALF, _SINGLE = 97, 109  # VK_FORMAT_R16G16B16A16_SFLOAT, VK_FORMAT_R32G32B32A32_SFLOAT
_RGBSDA, _BT709, _LINEAR = 1, 1, 1  # colour model, primaries, transfer function
_CHANNELS = (0, 1, 2, 15)  # red, green, blue, alpha
_SIGNED_FLOAT = 0x40 | 0x80


def pack(texels: bytes, width: int, height: int, layers: int, *, half: bool) -> bytes:
    """A KTX2 file of one level.

    Parameters
    ----------
    texels : bytes
        ``layers * height * width`` texels of four numbers, little-endian.
    width, height, layers : int
        One layer makes a plain two-dimensional texture.
    half : bool
        The numbers are float16, not float32.
    """
    size = 2 if half else 4
    descriptor = _descriptor(size)
    writer = b"KTXwriter\0mocap\0"
    pairs = struct.pack("<I", len(writer)) + writer
    pairs += b"\0" * (-len(pairs) % 4)
    start = len(_IDENTIFIER) + 9 * 4 + 4 * 4 + 2 * 8
    at_descriptor = start + 3 * 8
    at_pairs = at_descriptor + len(descriptor)
    at_level = at_pairs + len(pairs)
    at_level += -at_level % (4 * size)
    head = _IDENTIFIER + struct.pack("<9I", _HALF if half else _SINGLE, size, width, height, 0, 0 if layers == 1 else layers, 1, 1, 0)
    index = struct.pack("<4I2Q", at_descriptor, len(descriptor), at_pairs, len(pairs), 0, 0)
    level = struct.pack("<3Q", at_level, len(texels), len(texels))
    body = head + index + level + descriptor + pairs
    return body + b"\0" * (at_level - len(body)) + texels


def _descriptor(size: int) -> bytes:
    """The basic data format descriptor: four floating-point samples of ``size`` bytes."""
    samples = b""
    for k, channel in enumerate(_CHANNELS):
        lowest, highest = struct.pack("<f", -1.0), struct.pack("<f", 1.0)
        samples += struct.pack("<HBB4B", 8 * size * k, 8 * size - 1, channel | _SIGNED_FLOAT, 0, 0, 0, 0) + lowest + highest
    block = struct.pack("<IHH4B", 0, 2, 24 + len(samples), _RGBSDA, _BT709, _LINEAR, 0)
    block += struct.pack("<4B8B", 0, 0, 0, 0, 4 * size, 0, 0, 0, 0, 0, 0, 0) + samples
    return struct.pack("<I", 4 + len(block)) + block

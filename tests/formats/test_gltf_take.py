# SPDX-License-Identifier: GPL-3.0-or-later
"""glTF animations against SciPy and plain matrices."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline
from scipy.spatial.transform import Rotation, Slerp

from mocap_addon import formats
from mocap_addon.formats import ReadOptions, gltf_take
from mocap_addon.formats.gltf_samplers import Sampler
from mocap_addon.motion.errors import FileError, MocapError
from tests.formats.gltf_writer import BYTE, SHORT, Gltf
from tests.paths import SHARED, need

TO_Z_UP = np.array([[1.0, 0, 0, 0], [0, 0, -1.0, 0], [0, 1.0, 0, 0], [0, 0, 0, 1.0]])


def matrix(rotation=(0, 0, 0, 1.0), translation=(0, 0, 0), scale=1.0) -> np.ndarray:
    out = np.eye(4)
    out[:3, :3] = Rotation.from_quat(rotation).as_matrix() * scale
    out[:3, 3] = translation
    return out


def turns(seed: int, count: int) -> np.ndarray:
    """Unit quaternions x, y, z, w, neighbours near each other."""
    rng = np.random.default_rng(seed)
    return (Rotation.from_rotvec(np.cumsum(rng.normal(size=(count, 3)) * 0.2, axis=0)) * Rotation.random(random_state=seed)).as_quat()


def chain(frames: int = 11, rate: float = 30.0, **above):
    """Armature node -> hips -> leg -> foot, skinned; hips travel, all turn. And the joints' world matrices (F, 3, 4, 4), Y up."""
    g = Gltf()
    holder = g.node("Armature", **above)
    hips = g.node("hips", holder, translation=[0, 1.0, 0])
    leg = g.node("leg", hips, translation=[0.1, -0.1, 0], rotation=[1.0, 0, 0, 0])
    foot = g.node("foot", leg, translation=[0, 0.5, 0.02])
    g.skin([hips, leg, foot])
    times = np.arange(frames) / rate
    walk = np.stack([np.zeros(frames), 1.0 + 0.02 * np.sin(times * 9), times], axis=-1)
    animation = g.animation("Walk")
    g.channel(animation, hips, "translation", times, walk)
    spins = [turns(k, frames) for k in range(3)]
    for node, spin in zip((hips, leg, foot), spins, strict=True):
        g.channel(animation, node, "rotation", times, spin, "LINEAR")
    top = matrix(above.get("rotation", (0, 0, 0, 1.0)), above.get("translation", (0, 0, 0)), above.get("scale", (1.0,))[0])
    world = np.empty((frames, 3, 4, 4))
    for f in range(frames):
        m = top
        for j, place in enumerate((walk[f], (0.1, -0.1, 0), (0, 0.5, 0.02))):
            m = m @ matrix(spins[j][f], place)
            world[f, j] = m
    return g, world


def assert_is(take, world, *, tolerance=1e-6) -> None:
    world = TO_Z_UP @ world
    np.testing.assert_allclose(take.global_positions, world[..., :3, 3], atol=tolerance)
    linear = world[..., :3, :3] / np.linalg.norm(world[..., :3, :3], axis=-2, keepdims=True)
    ours = Rotation.from_quat(take.global_rotations[..., [1, 2, 3, 0]].reshape(-1, 4)).as_matrix().reshape(linear.shape)
    np.testing.assert_allclose(ours, linear, atol=tolerance)


def test_a_chain(tmp_path):
    g, world = chain()
    (take,) = formats.read(g.save(tmp_path / "a.glb"))
    assert (take.name, take.rate, take.skeleton.names) == ("Walk", Fraction(30), ("hips", "leg", "foot"))
    np.testing.assert_array_equal(take.times, np.arange(11) / 30)
    assert_is(take, world)
    assert take.facts["format"] == "glTF" and take.facts["up"] == "Y" and take.facts["unit"] == 1.0
    assert take.skeleton.rest_global_positions[2] == pytest.approx([0.1, 0.02, 0.4])  # the leg's node is turned by 180 degrees


def test_what_stands_above_is_folded_in(tmp_path):
    above = {"rotation": Rotation.from_euler("XYZ", [-90, 30, 5], degrees=True).as_quat(), "scale": [0.01] * 3, "translation": [3, 2, 1]}
    g, world = chain(**above)
    (take,) = formats.read(g.save(tmp_path / "a.glb"))
    assert_is(take, world)
    assert np.linalg.norm(take.skeleton.rest_translations[2]) == pytest.approx(0.01 * np.hypot(0.5, 0.02))


def test_motion_of_a_node_above_is_folded_in(tmp_path):
    g, world = chain()
    times, drive = np.array([0.0, 10 / 30]), [[0, 0, 0], [5.0, 0, 2.0]]
    g.channel(g.data["animations"][0], 0, "translation", times, drive)
    (take,) = formats.read(g.save(tmp_path / "a.glb"))
    for f in range(len(world)):
        world[f] = matrix(translation=np.array([5.0, 0, 2.0]) * f / 10) @ world[f]
    assert_is(take, world)


def test_a_key_a_hair_beside_its_frame_is_that_frame(tmp_path):
    """float32 seconds: 100 s at 30 fps are off by up to 4 microseconds."""
    g, world = chain()
    late = np.arange(11) / 30 + 100.0
    for sampler in g.data["animations"][0]["samplers"]:
        sampler["input"] = g.accessor(late[:, None])
    (take,) = formats.read(g.save(tmp_path / "a.glb"))
    assert take.rate == 30 and take.times[0] == 0.0
    assert_is(take, world)


# --- curves --------------------------------------------------------------------------------------------------------------------------


AT = np.linspace(-0.5, 4.5, 201)
KEYS = np.array([0.0, 0.7, 1.0, 2.5, 4.0])


def test_linear_rotation_is_slerp():
    spin = turns(3, 5) * np.array([1, -1, 1, 1, -1])[:, None]  # signs do not matter
    ours = Sampler(KEYS, spin[:, [3, 0, 1, 2]], "LINEAR", True).at(AT)
    truth = Slerp(KEYS, Rotation.from_quat(spin))(np.clip(AT, 0, 4))
    assert (Rotation.from_quat(ours[:, [1, 2, 3, 0]]) * truth.inv()).magnitude().max() < 1e-7


def test_linear_and_step():
    values = np.random.default_rng(1).normal(size=(5, 3))
    truth = np.stack([np.interp(AT, KEYS, values[:, c]) for c in range(3)], axis=-1)
    np.testing.assert_allclose(Sampler(KEYS, values, "LINEAR", False).at(AT), truth, atol=1e-12)
    step = Sampler(KEYS, values, "STEP", False)
    np.testing.assert_array_equal(step.at(KEYS), values)
    np.testing.assert_array_equal(step.at(np.array([-1.0, 0.699, 0.701, 3.999, 9.0])), values[[0, 0, 1, 3, 4]])


def test_cubic_spline():
    rng = np.random.default_rng(2)
    raw = rng.normal(size=(5, 3, 4))
    ours = Sampler(KEYS, raw[..., :3], "CUBICSPLINE", False).at(AT)
    for i in range(4):  # a key has one tangent on each side
        inside = (KEYS[i] <= AT) & (KEYS[i + 1] >= AT)
        spline = CubicHermiteSpline(KEYS[i : i + 2], raw[i : i + 2, 1, :3], [raw[i, 2, :3], raw[i + 1, 0, :3]])
        np.testing.assert_allclose(ours[inside], spline(AT[inside]), atol=1e-9)
    turned = Sampler(KEYS, raw, "CUBICSPLINE", True).at(AT)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), 1.0)
    spline = CubicHermiteSpline(KEYS[:2], raw[:2, 1], [raw[0, 2], raw[1, 0]])(0.3)
    np.testing.assert_allclose(Sampler(KEYS, raw, "CUBICSPLINE", True).at(np.array([0.3]))[0], spline / np.linalg.norm(spline), atol=1e-12)


@pytest.mark.parametrize("how", ["cubic", "step"])
def test_curved_and_stepped_files(tmp_path, how):
    g, _world = chain(2)
    del g.data["animations"][0]["channels"][1:]
    times = np.array([0.0, 0.5, 1.0])
    if how == "cubic":
        values = np.zeros((3, 3, 3))
        values[:, 1] = [[0, 1, 0], [0, 1, 1], [0, 1, 0]]
        g.channel(g.data["animations"][0], 1, "translation", times, values.reshape(9, 3), "CUBICSPLINE")
    else:
        g.channel(g.data["animations"][0], 1, "translation", times, [[0, 1, 0], [0, 1, 1], [0, 1, 0]], "STEP")
    (take,) = formats.read(g.save(tmp_path / "a.glb"))
    assert take.rate == 24 and take.frames == 25
    forward = -take.global_positions[:, 0, 1]
    t = np.arange(13) / 12
    expected = 3 * t**2 - 2 * t**3 if how == "cubic" else (t >= 1).astype(float)
    np.testing.assert_allclose(forward[:13], expected, atol=1e-6)


# --- how numbers are stored ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SHORT, BYTE])
def test_packed_rotations(tmp_path, kind):
    g, world = chain()
    for node, spin in zip((1, 2, 3), (turns(k, 11) for k in range(3)), strict=True):
        sampler = g.data["animations"][0]["samplers"][node]
        sampler["output"] = g.accessor(spin, kind, normalized=True, stride=8 if kind == SHORT else 12)
    (take,) = formats.read(g.save(tmp_path / "a.glb"))
    assert_is(take, world, tolerance=1e-4 if kind == SHORT else 2e-2)


def test_sparse(tmp_path):
    g, world = chain()
    sampler = g.data["animations"][0]["samplers"][0]
    rows = np.array([0.5, 1.5, 2.5])
    sampler["output"] = g.sparse(11, [0, 4, 10], np.stack([rows, rows, rows], axis=-1))
    (take,) = formats.read(g.save(tmp_path / "a.glb"))
    np.testing.assert_allclose(take.global_positions[[0, 4, 10], 0], np.stack([rows, -rows, rows], axis=-1), atol=1e-6)
    np.testing.assert_allclose(take.global_positions[[1, 5], 0], 0.0, atol=1e-6)
    sampler["output"] = g.sparse(11, [4], [[7.0, 8.0, 9.0]], base=sampler_output(g))
    (take,) = formats.read(g.save(tmp_path / "b.glb"))
    np.testing.assert_allclose(take.global_positions[4, 0], [7.0, -9.0, 8.0], atol=1e-6)
    np.testing.assert_allclose(take.global_positions[5, 0], (TO_Z_UP @ world[5, 0])[:3, 3], atol=1e-6)


def sampler_output(g: Gltf) -> int:
    """The accessor that :func:`chain` wrote the hips' places to."""
    return next(i for i, a in enumerate(g.data["accessors"]) if a["type"] == "VEC3" and "sparse" not in a)


def test_text_files_and_their_buffers(tmp_path):
    g, world = chain()
    (tmp_path / "inside.gltf").write_text(g.gltf())
    (tmp_path / "a b.bin").write_bytes(bytes(g.buffer))
    (tmp_path / "beside.gltf").write_text("\ufeff" + g.gltf("a%20b.bin"), encoding="utf-8")
    for name in ("inside.gltf", "beside.gltf"):
        assert_is(formats.read(tmp_path / name)[0], world)
    (tmp_path / "a b.bin").write_bytes(bytes(g.buffer)[:-40])
    with pytest.raises(FileError, match="ends early"):
        formats.read(tmp_path / "beside.gltf")
    (tmp_path / "a b.bin").unlink()
    with pytest.raises(FileError, match=r'"a b\.bin".*missing'):
        formats.read(tmp_path / "beside.gltf")
    for uri in ("https://example.com/a.bin", "file:///etc/passwd", "/etc/passwd", "C:/a.bin", "//host/a.bin"):
        (tmp_path / "far.gltf").write_text(g.gltf(uri))
        with pytest.raises(FileError, match="elsewhere"):
            formats.read(tmp_path / "far.gltf")


def test_compressed_buffers_are_named(tmp_path):
    g, _world = chain()
    for view in g.data["bufferViews"]:
        view["extensions"] = {"EXT_meshopt_compression": {}}
    with pytest.raises(FileError, match="meshopt"):
        formats.read(g.save(tmp_path / "a.glb"))


# --- rest pose -----------------------------------------------------------------------------------------------------------------------


def test_the_rest_pose_is_the_bind_pose(tmp_path):
    """Nodes stand in the first frame's pose; the skin was bound in another one."""
    g, _world = chain()
    turn = Rotation.from_euler("z", 40, degrees=True).as_quat()
    bind = [matrix(translation=(0, 1, 0))]
    bind.append(bind[0] @ matrix(turn, (0.1, -0.1, 0)))
    bind.append(bind[1] @ matrix(turn, (0, 0.5, 0.02)))
    g.data["skins"] = []
    g.skin([1, 2, 3], bind)
    (take,) = formats.read(g.save(tmp_path / "a.glb"))
    truth = TO_Z_UP @ np.array(bind)
    np.testing.assert_allclose(take.skeleton.rest_global_positions, truth[:, :3, 3], atol=1e-6)


def test_bind_matrices_of_another_size_mean_something_else(tmp_path):
    g, _world = chain()
    bind = [matrix(translation=(0, 100, 0)), matrix(translation=(10, 70, 0)), matrix(translation=(10, 10, 0))]
    g.data["skins"] = []
    g.skin([1, 2, 3], bind)
    (take,) = formats.read(g.save(tmp_path / "a.glb"))
    assert take.skeleton.rest_global_positions[2] == pytest.approx([0.1, 0.02, 0.4])


# --- which nodes ---------------------------------------------------------------------------------------------------------------------


def test_a_node_between_joints_is_a_joint(tmp_path):
    g, world = chain()
    g.data["skins"] = []
    g.skin([1, 3])
    (take,) = formats.read(g.save(tmp_path / "a.glb"))
    assert take.skeleton.names == ("hips", "leg", "foot")
    assert_is(take, world)


def test_without_skins_the_moving_nodes_are_the_body(tmp_path):
    g, world = chain()
    g.data["skins"] = []
    g.node("end", 3, translation=[0, 0.1, 0])
    g.data["meshes"] = [{"primitives": []}]
    g.node("shown", 3, mesh=0)
    (take,) = formats.read(g.save(tmp_path / "a.glb"))
    assert take.skeleton.names == ("hips", "leg", "foot", "end")
    np.testing.assert_allclose(take.global_positions[:, :3], (TO_Z_UP @ world)[..., :3, 3], atol=1e-6)


def test_two_bodies_and_several_animations(tmp_path):
    g, world = chain()
    other = g.node("Other")
    a = g.node("root", other, translation=[4, 0, 0])
    b = g.node("tip", a, translation=[0, 1, 0])
    g.skin([a, b])
    second = g.animation("Wave")
    g.channel(second, b, "rotation", [0, 1 / 24, 2 / 24], turns(9, 3))
    g.channel(second, 3, "rotation", [0, 1 / 24, 2 / 24], turns(9, 3))
    third = g.animation()
    g.channel(third, a, "translation", [0, 1 / 24], [[0, 0, 0], [1, 0, 0]])
    fourth = g.animation("Walk")
    g.channel(fourth, 1, "translation", [0, 1 / 24], [[0, 0, 0], [1, 0, 0]])
    takes = formats.read(g.save(tmp_path / "file.glb"))
    assert [(t.name, t.skeleton.names[0], t.frames) for t in takes] == [
        ("Walk", "hips", 11),
        ("Wave", "hips", 3),
        ("Wave root", "root", 3),
        ("file 3", "root", 2),
        ("Walk 2", "hips", 2),
    ]
    assert_is(takes[0], world)


def test_skins_that_share_joints_are_one_body(tmp_path):
    g, world = chain()
    g.data["skins"] = []
    for joints in ([1, 2], [2, 3], [3]):
        g.skin(joints)
    (take,) = formats.read(g.save(tmp_path / "a.glb"))
    assert_is(take, world)


def test_names_are_unique(tmp_path):
    g, _world = chain()
    for node in g.data["nodes"][1:3]:
        node["name"] = "bone"
    del g.data["nodes"][3]["name"]
    (take,) = formats.read(g.save(tmp_path / "a.glb"))
    assert take.skeleton.names == ("bone", "bone.001", "node_3")


def test_a_vrm_animation_is_named_after_its_humanoid(tmp_path):
    g, world = chain()
    g.data["skins"] = []
    g.humanoid({"hips": 1, "leftUpperLeg": 2, "leftFoot": 3})
    (take,) = formats.read(g.save(tmp_path / "a.vrma"))
    assert take.skeleton.names == ("hips", "leftUpperLeg", "leftFoot")
    assert take.facts["format"] == "VRM animation"
    assert_is(take, world)


def test_the_vrm_animation_of_another_maker():
    (take,) = formats.read(need(SHARED / "targets" / "test.vrma"))
    assert take.rate == 24 and take.name == "test" and len(take.skeleton) == 51
    assert {"hips", "spine", "chest", "head", "leftLittleDistal"} < set(take.skeleton.names)
    rest = take.skeleton.rest_global_positions
    assert rest[:, 2].max() == pytest.approx(1.5583, abs=1e-4)
    left, right = (rest[take.skeleton.index(f"{side}Hand")] for side in ("left", "right"))
    assert left[0] == pytest.approx(-right[0], abs=1e-3) and left[0] > 0.6  # a T-pose whose left is +X


# --- refusals and options ------------------------------------------------------------------------------------------------------------


def test_scale_of_bones(tmp_path):
    g, _world = chain()
    g.data["nodes"][1]["scale"] = [2.0, 2.0, 2.0]
    (take,) = formats.read(g.save(tmp_path / "a.glb"))
    assert np.linalg.norm(take.skeleton.rest_translations[2]) == pytest.approx(2 * np.hypot(0.5, 0.02))
    assert not take.notes
    g.channel(g.data["animations"][0], 2, "scale", [0, 1 / 3], [[1, 1, 1], [1, 2, 1]])
    (take,) = formats.read(g.save(tmp_path / "b.glb"))
    assert take.notes == ('The scale of "leg" is animated; it is taken where Scale is on, and moves what hangs on it.',)
    g.data["nodes"][2]["scale"] = [1.0, 2.0, 1.0]
    g.data["animations"][0]["channels"].pop()
    (take,) = formats.read(g.save(tmp_path / "still.glb"))
    assert take.notes == ('The scale of "leg" is animated or uneven; it was left out.',) and not take.scales
    g.data["nodes"][0]["scale"] = [1.0, 1.0, -1.0]
    with pytest.raises(FileError, match='"Armature" is mirrored'):
        formats.read(g.save(tmp_path / "c.glb"))


def test_scale_that_moves_is_kept_and_moves_what_hangs_on_it(tmp_path):
    """glTF multiplies matrices: a node's scale stretches the way to its children, along its own axes."""
    g, world = chain()
    grown = np.array([[1.0, 1.0 + 0.1 * k, 1.0 - 0.02 * k] for k in range(11)])
    g.channel(g.data["animations"][0], 2, "scale", np.arange(11) / 30, grown)
    (take,) = formats.read(g.save(tmp_path / "a.glb"))
    assert list(take.scales) == ["leg"] and take.scales["leg"] == pytest.approx(grown, abs=1e-6)
    stretched = world.copy()
    for f in range(11):
        stretched[f, 2] = world[f, 1] @ np.diag([*grown[f], 1.0]) @ np.linalg.inv(world[f, 1]) @ world[f, 2]
    places = (TO_Z_UP @ stretched)[..., :3, 3]
    np.testing.assert_allclose(take.global_positions, places, atol=1e-6)
    half = take.sampled(np.array([0.05]))
    assert half.scales["leg"][0] == pytest.approx((1.0, 1.15, 0.97), abs=1e-6) and take.block(3, 5).scales["leg"] == pytest.approx(
        grown[3:5]
    )


def test_options(tmp_path):
    g, world = chain()
    path = g.save(tmp_path / "a.glb")
    (take,) = formats.read(path, ReadOptions(rate=Fraction(60), unit=0.01))
    assert take.rate == 60 and take.times[-1] == pytest.approx(10 / 60)
    np.testing.assert_allclose(take.global_positions, 0.01 * (TO_Z_UP @ world)[..., :3, 3], atol=1e-8)
    (take,) = formats.read(path, ReadOptions(up="Z"))
    np.testing.assert_allclose(take.global_positions, world[..., :3, 3], atol=1e-6)


def test_uneven_keys_are_kept(tmp_path):
    g, _world = chain(2)
    times = np.array([0.0, 0.11, 0.3171, 0.77777])
    del g.data["animations"][0]["channels"][:]
    places = np.arange(12.0).reshape(4, 3)
    g.channel(g.data["animations"][0], 1, "translation", times, places)
    (take,) = formats.read(g.save(tmp_path / "a.glb"))
    assert take.rate is None and "uneven" in take.notes[0]
    np.testing.assert_allclose(take.times, times, atol=1e-7)
    np.testing.assert_allclose(take.global_positions[:, 0], places[:, [0, 2, 1]] * [1, -1, 1], atol=1e-6)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda g: g.data.update(animations=[]), "no animation"),
        (lambda g: [c["target"].update(path="weights") for c in g.data["animations"][0]["channels"]], "moves a skeleton"),
        (lambda g: g.data["accessors"][0].update(count=10**9), "damaged"),
        (lambda g: g.data["accessors"][0].update(count=-1), "damaged"),
        (lambda g: g.data["accessors"][1].update(bufferView=99), "damaged"),
        (lambda g: g.data["bufferViews"][1].update(byteOffset=-8), "damaged"),
        (lambda g: g.data["bufferViews"][1].update(byteOffset=10**12), "ends early"),
        (lambda g: g.data["bufferViews"][1].update(byteStride=4), "damaged"),
        (lambda g: g.data["animations"][0]["channels"][0].update(sampler=77), "damaged"),
        (lambda g: g.data["animations"][0]["samplers"][0].update(interpolation="ODD"), "damaged"),
        (lambda g: g.data["skins"][0].update(joints=[1, 2, 99]), "damaged"),
        (lambda g: g.data["accessors"].__setitem__(0, 7), "damaged"),
    ],
)
def test_damage(tmp_path, change, word):
    g, _world = chain()
    change(g)
    with pytest.raises(FileError, match=word) as caught:
        formats.read(g.save(tmp_path / "a.glb"))
    assert str(caught.value).startswith("a.glb: ")


def test_times_that_run_backwards_or_are_no_numbers(tmp_path):
    g, _world = chain(2)
    for times in ([0.0, 0.5, 0.2], [0.0, np.nan, 1.0], []):
        if times:
            g.channel(g.data["animations"][0], 1, "translation", times, np.eye(3))
        else:
            g.data["animations"][0]["samplers"][-1]["input"] = g.accessor(np.zeros((0, 1)))
        with pytest.raises(FileError, match="damaged"):
            formats.read(g.save(tmp_path / "a.glb"))


def test_a_file_cut_anywhere_ends_in_a_sentence(tmp_path):
    raw = chain()[0].glb()
    path = tmp_path / "a.glb"
    for end in range(4, len(raw) - 4, 37):
        path.write_bytes(raw[:end])
        with pytest.raises(MocapError):
            formats.read(path)


def test_random_damage_ends_in_a_take_or_a_sentence(tmp_path):
    raw, rng = chain()[0].glb(), np.random.default_rng(4)
    path, failed = tmp_path / "a.glb", 0
    for _ in range(300):
        broken = bytearray(raw)
        for at in rng.integers(12, len(raw), 3):
            broken[at] = int(rng.integers(0, 256))
        path.write_bytes(broken)
        try:
            for take in gltf_take.read(path):
                assert np.isfinite(take.local_translations).all()
        except MocapError:
            failed += 1
    assert 0 < failed < 300

"""Each kind of stream against data worked out by hand."""

import gzip
import inspect
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attractor import InputError
from attractor.tasks import ArrayTask, Data
from attractor.tasks.data import data_root, verify
from attractor.tasks.data.series import read_series
from attractor.tasks.images.task import Images
from attractor.tasks.streams import (
    ICARL_ORDER,
    STREAMS,
    Stream,
    in_groups,
    incremental_images,
    inject_noise,
    language,
    own_heads,
    permuted,
    permuted_images,
    rotated,
    rotated_images,
    series_sets,
    split_classes,
    split_images,
    split_series,
    with_features,
)
from attractor.tasks.streams.incremental import SETTINGS
from attractor.tasks.streams.table import task_count


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def needs(*parts: str) -> None:
    if not data_root().joinpath(*parts).exists():
        pytest.skip(f"needs {'/'.join(parts)} below the data root; set ATTRACTOR_DATA")


def vectors() -> Data:
    return Data(torch.arange(50.0).reshape(5, 10), torch.tensor([0, 1, 2, 3, 4]))


def test_a_permutation_is_one_of_all_features_and_the_same_for_all_samples() -> None:
    stream = permuted(vectors(), vectors(), tasks=4, generator=seeded())
    assert torch.equal(stream.arrays()[0].test_samples.x, vectors().x)
    orders = set()
    for one in stream.arrays():
        x = one.test_samples.x
        assert torch.equal(x.sort(1).values, vectors().x)
        assert torch.equal(x - x[:1], vectors().x - vectors().x[:1])
        assert torch.equal(one.samples(torch.arange(5)).x, x)
        orders.add(tuple(x[0].tolist()))
    assert len(orders) == 4


def test_the_first_task_can_be_permuted_too() -> None:
    one, other = (
        permuted(vectors(), vectors(), tasks=2, identity_first=first, generator=seeded())
        for first in (True, False)
    )
    assert not torch.equal(other.arrays()[0].test_samples.x, vectors().x)
    assert torch.equal(one.arrays()[1].test_samples.x, other.arrays()[1].test_samples.x)


def test_steps_of_sequences_are_permuted() -> None:
    data = Data(torch.randn(3, 6, 2), torch.tensor([0, 1, 2]))
    x = permuted(data, data, tasks=2, generator=seeded()).arrays()[1].test_samples.x
    order = [int((data.x[0] == step).all(1).nonzero()) for step in x[0]]
    assert torch.equal(x, data.x[:, order])


@pytest.mark.parametrize(("degrees", "turns"), [(0, 0), (90, 1), (180, 2), (270, 3), (-90, 3)])
def test_right_angles_are_exact(degrees: float, turns: int) -> None:
    data = Data(torch.randn(2, 5, 5), torch.tensor([0, 1]))
    (one,) = rotated(data, data, [degrees], fill=-0.4).arrays()
    expected = torch.rot90(data.x, turns, (1, 2)).flatten(1)
    torch.testing.assert_close(one.test_samples.x, expected, atol=1e-5, rtol=0)


def test_a_turned_point_is_where_trigonometry_has_it() -> None:
    image = torch.full((1, 101, 101), -1.0)
    image[0, 50, 80] = 1.0  # 30 to the right of the centre
    data = Data(image, torch.tensor([0]))
    (one,) = rotated(data, data, [30], fill=-1.0).arrays()
    seen = one.test_samples.x.reshape(101, 101) + 1
    rows = torch.arange(101.0)
    up = 50 - float((seen.sum(1) * rows).sum() / seen.sum())
    right = float((seen.sum(0) * rows).sum() / seen.sum()) - 50
    assert up == pytest.approx(30 * math.sin(math.radians(30)), abs=0.2)
    assert right == pytest.approx(30 * math.cos(math.radians(30)), abs=0.2)


def test_corners_of_rotated_images_are_black() -> None:
    one = rotated_images(dataset="digits", degrees=[45]).arrays()[0]
    corner = one.test_samples.x[:, 0]
    torch.testing.assert_close(corner, torch.full_like(corner, -0.3053 / 0.3760))


def test_noise_shuffles_a_part_of_each_sample_and_spares_the_test() -> None:
    x = torch.arange(100.0).repeat(200, 1)
    clean = ArrayTask("a", 0, Data(x, torch.zeros(200)), Data(x, torch.zeros(200)), (0,))
    (noisy,) = inject_noise(Stream("one", [clean]), 0.3).arrays()
    seen = noisy.samples(torch.arange(200), seeded()).x
    assert torch.equal(seen.sort(1).values, x)
    moved = (seen != x).sum(1)
    # of 30 shuffled values one stays in its place on average, whatever their number
    assert moved.max() <= 30
    assert moved.float().mean() == pytest.approx(29, abs=0.3)
    assert (seen != x).float().mean(0).std() < 0.05  # no place is favoured
    assert torch.equal(noisy.test_samples.x, x)
    assert torch.equal(noisy.samples(torch.arange(200), seeded()).x, seen)
    with pytest.raises(InputError, match="from 0 to 1, but got 30"):
        inject_noise(Stream("one", [clean]), 30)


def test_noise_by_its_share_in_the_fingerprint() -> None:
    stream = permuted(vectors(), vectors(), tasks=2, generator=seeded())
    shares = (0.1, 0.104, 0.1000001, 0.3, 0.07)
    noisy = [inject_noise(stream, share) for share in shares]
    assert len({one.fingerprint() for one in noisy}) == len(shares)
    names = ["10%", "10.4%", "10.00001%", "30%", "7%"]
    assert [one.name for one in noisy] == [f"permuted, {name} noise" for name in names]


def test_noise_is_never_lost() -> None:
    noisy = inject_noise(permuted(vectors(), vectors(), tasks=1, generator=seeded()), 0.5)
    with pytest.raises(InputError, match="without noise.*'permuted, 50% noise'.*of features"):
        with_features(noisy, lambda x: x)
    with pytest.raises(InputError, match="without noise.*'permuted, 50% noise'.*once"):
        inject_noise(noisy, 0.1)


def test_both_halves_are_permuted_alike() -> None:
    for features in (8, 12):
        other = Data(torch.zeros(5, features), vectors().y)
        with pytest.raises(InputError, match=f"one size, but got 10 and {features}"):
            permuted(vectors(), other, tasks=2, generator=seeded())


def test_steps_without_an_answer_are_no_class() -> None:
    silent = vectors()._replace(y=torch.tensor([-100, 1, 0, 1, 2], dtype=torch.int32))
    assert permuted(silent, silent, tasks=1, generator=seeded())[0].classes == (0, 1, 2)


def test_classes_are_split() -> None:
    stream = split_classes(vectors(), vectors(), [(3, 1), (4, 0)])
    assert stream[0].train.y.tolist() == [1, 3]
    assert stream[0].train.x[:, 0].tolist() == [10, 30]
    assert stream.outputs == 5
    relabelled = split_classes(vectors(), vectors(), [(3, 1), (4, 0)], relabel=True)
    assert relabelled[0].train.y.tolist() == [1, 0]
    assert relabelled.outputs == 2


def test_a_class_without_samples_is_an_empty_task() -> None:
    with pytest.raises(InputError, match="'classes 7'.*0 inputs"):
        split_classes(vectors(), vectors(), [(0,), (7,)])
    with pytest.raises(InputError, match="10 classes do not go into groups of 3"):
        in_groups(range(10), 3)


def test_the_icarl_order_is_numpys_shuffle_with_seed_1993() -> None:
    order = np.arange(100)
    np.random.RandomState(1993).shuffle(order)
    assert tuple(order.tolist()) == ICARL_ORDER


def test_own_heads_share_no_output() -> None:
    stream = own_heads(permuted(vectors(), vectors(), tasks=2, generator=seeded()))
    assert stream.identity
    assert stream[1].classes == (5, 6, 7, 8, 9)
    assert stream[1].train.y.tolist() == [5, 6, 7, 8, 9]


def test_features_are_computed_from_what_the_model_would_see() -> None:
    stream = permuted(vectors(), vectors(), tasks=2, generator=seeded())
    features = with_features(stream, lambda x: x[:, :2] * 2, batch_size=2)
    seen, plain = (one.arrays()[1].test_samples.x for one in (features, stream))
    assert torch.equal(seen, plain[:, :2] * 2)
    assert not features[1].train.x.requires_grad


def test_every_stream_of_the_table_that_needs_no_files_can_be_had() -> None:
    for name, make in STREAMS.items():
        parameters = inspect.signature(make).parameters
        options: dict[str, Any] = {"generator": seeded()} if "generator" in parameters else {}
        if name in ("incremental_images", "language", "series_sets", "split_series"):
            continue
        options |= {"datasets": ["digits"]} if name == "image_sets" else {"dataset": "digits"}
        stream = make(**options)
        assert task_count(name, options) == len(stream)
        x = stream.arrays()[len(stream) - 1].test_samples.x
        assert len(x)
        assert x.dtype == torch.float32


@pytest.mark.parametrize(
    ("name", "options", "count"),
    [
        ("permuted_images", {"tasks": 3}, 3),
        ("rotated_images", {"tasks": 3, "degrees": [0, 10]}, 2),
        ("split_images", {"size": 5}, 2),
        ("image_sets", {}, 2),
        ("incremental_images", {}, 10),
        ("incremental_images", {"dataset": "cub200"}, 10),
        ("incremental_images", {"dataset": "cifar10", "first": 2, "size": 4}, 2),
        ("incremental_images", {"part": "first"}, 1),
        ("language", {"domains": ["ptb"]}, 1),
        ("series_sets", {}, 3),
        ("split_series", {}, None),
    ],
)
def test_tasks_are_counted_without_data(
    name: str, options: dict[str, Any], count: int | None
) -> None:
    assert task_count(name, options) == count


def test_settings_can_be_chosen_without_the_test_set() -> None:
    tested = permuted_images(dataset="digits", tasks=1, generator=seeded())[0]
    chosen = permuted_images(dataset="digits", tasks=1, held="valid", generator=seeded())[0]
    assert len(tested.train.y) == 1547
    assert len(chosen.train.y) == 1297
    rows = {row.tobytes() for row in tested.test.x.numpy()}
    assert not rows & {row.tobytes() for row in chosen.test.x.numpy()}
    assert not rows & {row.tobytes() for row in chosen.train.x.numpy()}


def test_split_digits_have_all_images() -> None:
    stream = split_images(dataset="digits")
    assert [one.classes for one in stream] == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
    assert sum(len(one.test.y) for one in stream) == 250


def test_permuted_mnist_is_normalised() -> None:
    if any(status.state == "missing" for status in verify("mnist")):
        pytest.skip("needs MNIST; set ATTRACTOR_DATA to a folder that has it")
    stream = permuted_images(tasks=2, generator=seeded())
    assert len(stream[1].train.y) == 60_000
    x = stream.arrays()[1].test_samples.x
    assert x.shape == (10_000, 784)
    assert x.min() == pytest.approx(-0.1307 / 0.3081, abs=1e-4)
    assert stream[1].train.x is stream[0].train.x  # one copy of the images in memory


def small_cifar100(half: str, root: object) -> Images:
    y = torch.arange(300) % 100
    x = y.to(torch.uint8)[:, None, None, None].expand(-1, 3, 32, 32)
    return Images(x, y)


def test_incremental_cifar100_is_cut_as_in_the_thesis(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = SETTINGS["cifar100"]._replace(load=small_cifar100)
    monkeypatch.setitem(SETTINGS, "cifar100", setting)
    stream = incremental_images(dataset="cifar100")
    assert len(stream) == 10
    assert stream[0].name == "classes 37, 95, 14, 71, 96"  # the 51st to 55th of iCaRL's order
    assert stream.outputs == 5
    x = stream.arrays()[0].test_samples.x
    assert x.shape == (15, 3, 32, 32)
    # a pixel of class 37 in the red channel
    of_37 = x[stream.arrays()[0].test_samples.y == 0]
    assert float(of_37[0, 0, 0, 0]) == pytest.approx((37 / 255 - 0.5071) / 0.2673, abs=1e-5)
    (first,) = incremental_images(dataset="cifar100", part="first")
    assert first.classes == tuple(range(50))
    shown = {int(v) for v in first.train.x[:, 0, 0, 0]}
    assert shown == set(ICARL_ORDER[:50])
    by_class = incremental_images(dataset="cifar100", relabel=False)
    assert by_class[0].classes == (37, 95, 14, 71, 96)
    assert by_class[0].train.x.dtype == torch.uint8  # bytes in memory


def test_incremental_cifar10() -> None:
    needs("cifar-10-batches-bin")
    stream = incremental_images(dataset="cifar10", batches=2)
    assert [one.name for one in stream] == ["classes 4, 5", "classes 6, 7", "classes 8, 9"]
    assert sum(len(one.test.y) for one in stream) == 6000
    x = stream.arrays()[0].test_samples.x
    assert abs(float(x.mean())) < 0.2
    assert float(x.std()) == pytest.approx(1, abs=0.1)


def test_series_of_both_formats(tmp_path: Path) -> None:
    flat = tmp_path / "A_TRAIN.tsv"
    flat.write_text("b\t1.5\t2\na\t3\t-4\n")
    x, lengths, y = read_series(flat)
    assert x.tolist() == [[[1.5], [2]], [[3], [-4]]]
    assert lengths is None
    assert y == ["b", "a"]
    ragged = tmp_path / "B_TRAIN.ts.gz"
    ragged.write_bytes(gzip.compress(b"# note\n@dimensions 2\n@data\n1,2,3:4,5,6:up\n7:8:down\n"))
    x, lengths, y = read_series(ragged)
    assert x[0].tolist() == [[1, 4], [2, 5], [3, 6]]
    assert x[1].tolist() == [[7, 8], [0, 0], [0, 0]]
    assert lengths is not None
    assert lengths.tolist() == [3, 1]


def test_damaged_and_missing_series_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected A_TRAIN.tsv or .ts in"):
        series_sets(datasets=["A"], root=tmp_path)
    broken = tmp_path / "ucr" / "A_TRAIN.tsv"
    broken.parent.mkdir()
    for content in ("", "a\tone\ttwo\n", "a\tnan\t1\n"):
        broken.write_text(content)
        with pytest.raises(InputError, match="A_TRAIN.tsv"):
            series_sets(datasets=["A"], root=tmp_path)


def test_series_streams(tmp_path: Path) -> None:
    folder = tmp_path / "UCRArchive_2018" / "A"
    folder.mkdir(parents=True)
    for half in ("TRAIN", "TEST"):
        (folder / f"A_{half}.ts").write_text("1,2:x\n3:y\n4,5:z\n6:w\n")
    stream = split_series(dataset="A", size=2, root=tmp_path)
    assert [one.classes for one in stream] == [(0, 1), (2, 3)]
    assert stream[0].train.lengths is not None
    assert stream[0].train.lengths.tolist() == [2, 1]
    (folder / "A_TEST.ts").write_text("1,2:v\n")
    with pytest.raises(InputError, match="classes w, x, y, z in the test half of A, but got v"):
        series_sets(datasets=["A"], root=tmp_path)


def test_real_series() -> None:
    needs("ucr")
    stream = series_sets(datasets=["CBF", "ECG200", "ArrowHead"])
    assert [len(one.train.y) for one in stream] == [30, 100, 36]
    assert [one.train.x.shape[1] for one in stream] == [128, 96, 251]
    vowels = split_series(dataset="JapaneseVowels")
    assert len(vowels) == 3
    assert vowels[0].train.lengths is not None
    assert vowels[0].train.x.shape[2] == 12


def texts(root: Path, **domains: str) -> None:
    for name, text in domains.items():
        (root / name).mkdir()
        (root / name / "train.txt").write_text(text, encoding="utf-8")
        (root / name / "test.txt.gz").write_bytes(gzip.compress(text[:5].encode()))


def test_language_asks_for_the_next_character(tmp_path: Path) -> None:
    texts(tmp_path, news="a cab~é\n", songs="zzzzz")
    stream = language(domains=["news", "songs"], length=3, root=tmp_path)
    x, y = stream[0].samples(torch.arange(2)).x, stream[0].train.y
    assert x.shape == (2, 3, 97)
    assert x.sum(-1).eq(1).all()
    assert x.argmax(-1).tolist() == [[66, 1, 68], [66, 67, 95]]  # "a c", "ab~"
    assert y.tolist() == [[1, 68, 66], [67, 95, 96]]  # " ca", "b~" and a letter not in ASCII
    assert stream.outputs == 97
    assert len(stream[1].test.y) == 1
    assert [len(one) for one in stream[0].held_out("test", 1)] == [1]
    assert "test_samples" not in stream[0].__dict__  # the large one-hot vectors are not kept


def test_language_of_too_little_text_or_none(tmp_path: Path) -> None:
    texts(tmp_path, news="abcdefgh")
    with pytest.raises(InputError, match="more than 20 characters in news"):
        language(domains=["news"], length=20, root=tmp_path)
    with pytest.raises(InputError, match=r"expected train.txt in .*poems"):
        language(domains=["poems"], root=tmp_path)
    (tmp_path / "news" / "train.txt").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(InputError, match="expected text in"):
        language(domains=["news"], root=tmp_path)


def test_real_language() -> None:
    needs("ptb")
    needs("wikitext-2")
    stream = language(samples=100)
    assert [len(one.train.y) for one in stream] == [100, 100]
    assert [one.name for one in stream] == ["ptb", "wikitext-2"]

"""The catalogue: every entry is complete and well formed."""

import math
import string

import pytest

from attractor.errors import InputError
from attractor.tasks.data import DATASETS, Dataset, File
from attractor.tasks.data.catalogue import dataset

FILES = [
    (name, file)
    for name, entry in DATASETS.items()
    for part in entry.parts.values()
    for file in (*part.forms, *([entry.archive] if entry.archive else []))
]
FOLDERS = {
    "mnist": "MNIST/raw",
    "fashion_mnist": "FashionMNIST/raw",
    "kmnist": "KMNIST/raw",
    "cifar10": "cifar-10-batches-bin",
    "cifar100": "cifar-100-binary",
    "cub200": "CUB_200_2011",
}
files = pytest.mark.parametrize(("name", "file"), FILES, ids=[file.path for _, file in FILES])
HEXADECIMAL = set(string.hexdigits.lower())


def test_the_image_sets_are_there() -> None:
    assert set(DATASETS) == set(FOLDERS)


@pytest.mark.parametrize("entry", DATASETS.values(), ids=lambda entry: str(entry.title))
def test_addresses_can_be_prefixed_to_a_file_name(entry: Dataset) -> None:
    for address in entry.addresses:
        assert address.startswith(("https://", "http://"))
        assert address.endswith("/")


@pytest.mark.parametrize("entry", DATASETS.values(), ids=lambda entry: str(entry.title))
def test_what_is_fetched_has_a_size_and_a_strong_sum(entry: Dataset) -> None:
    firsts = [part.forms[0] for part in entry.parts.values()]
    for file in [entry.archive] if entry.archive else firsts:
        assert file.sha256
        assert file.size


@files
def test_sums_are_sums(name: str, file: File) -> None:
    for found, length in ((file.md5, 32), (file.sha256, 64)):
        if found is not None:
            assert len(found) == length
            assert set(found) <= HEXADECIMAL


@files
def test_paths_are_in_the_usual_layout(name: str, file: File) -> None:
    if file != DATASETS[name].archive:
        assert file.path.startswith(f"{FOLDERS[name]}/")
    assert ".." not in file.path


def test_no_sum_is_entered_twice() -> None:
    sums = [found for file in {file for _, file in FILES} for found in (file.md5, file.sha256)]
    known = [found for found in sums if found]
    assert len(set(known)) == len(known)


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_a_raw_file_has_the_size_of_its_array(name: str) -> None:
    for part in DATASETS[name].parts.values():
        assert part.shape is not None
        assert part.forms[0].size == math.prod(part.shape)


def test_an_unknown_data_set_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match="known data set .* but got 'mnits'.*mean 'mnist'"):
        dataset("mnits")

"""The catalogue: every entry is complete and well formed."""

import string

import pytest

from attractor.errors import InputError
from attractor.tasks.data import DATASETS, Dataset, File
from attractor.tasks.data.catalogue import dataset

FILES = [
    (name, file)
    for name, entry in DATASETS.items()
    for part in entry.parts.values()
    for file in part.forms
]
files = pytest.mark.parametrize(("name", "file"), FILES, ids=[file.path for _, file in FILES])
HEXADECIMAL = set(string.hexdigits.lower())


def test_the_three_image_sets_are_there() -> None:
    assert set(DATASETS) == {"mnist", "fashion_mnist", "kmnist"}


@pytest.mark.parametrize("entry", DATASETS.values(), ids=lambda entry: str(entry.title))
def test_addresses_can_be_prefixed_to_a_file_name(entry: Dataset) -> None:
    for address in entry.addresses:
        assert address.startswith(("https://", "http://"))
        assert address.endswith("/")


@pytest.mark.parametrize("entry", DATASETS.values(), ids=lambda entry: str(entry.title))
def test_what_is_fetched_has_a_size_and_a_strong_sum(entry: Dataset) -> None:
    for part in entry.parts.values():
        assert part.forms[0].sha256
        assert part.forms[0].size


@files
def test_sums_are_sums(name: str, file: File) -> None:
    assert len(file.md5) == 32
    assert set(file.md5) <= HEXADECIMAL
    if file.sha256 is not None:
        assert len(file.sha256) == 64
        assert set(file.sha256) <= HEXADECIMAL


@files
def test_paths_are_in_torchvisions_layout(name: str, file: File) -> None:
    folder = {"mnist": "MNIST", "fashion_mnist": "FashionMNIST", "kmnist": "KMNIST"}[name]
    assert file.path.startswith(f"{folder}/raw/")
    assert ".." not in file.path


def test_no_sum_is_entered_twice() -> None:
    sums = [file.md5 for _, file in FILES]
    assert len(set(sums)) == len(sums)


def test_an_unknown_data_set_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match="known data set .* but got 'mnits'.*mean 'mnist'"):
        dataset("mnits")

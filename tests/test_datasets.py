"""What every module of datasets/ promises, and how they are found."""

import dataclasses
import inspect

import pytest
from refusals import refused

import datasets
from benchmark.core.errors import UserError
from benchmark.data.raw_files import RawDataset, raw_dataset
from benchmark.season.parameters import DatasetSettings
from datasets import Needed
from seasons import params_of


@pytest.fixture(params=datasets.names())
def module(request):
    return datasets.load(request.param)


def test_names_are_the_files():
    assert {"flickr8k", "folder", "shapes"} <= set(datasets.names())
    assert not [name for name in datasets.names() if name.startswith("_")]


def test_card_is_filled(module):
    card = module.card()
    assert isinstance(card, datasets.Card)
    assert all(text.strip() for text in (card.title, card.source, card.licence, card.split))
    assert type(card.may_publish) is bool
    assert set(card.expected_images) <= set(datasets.SPLITS)
    for remote in card.remote:
        assert remote.urls and all(url.startswith("https://") for url in remote.urls)
        assert remote.sha256 is None or len(bytes.fromhex(remote.sha256)) == 32
    assert not card.remote or card.obtain.strip(), "tell what to do when nothing can be downloaded"
    for needed in card.checklist:
        assert needed.what.strip() and needed.ways and all(needed.ways)


def test_a_dataset_with_raw_files_tells_how_to_obtain_them(module, tmp_path):
    """By this its pipeline knows that there are some."""
    try:
        has_files = bool(module.inventory(tmp_path))
    except datasets.DataError:
        has_files = True
    assert has_files == bool(module.card().obtain)


def test_options_are_declared_once(module):
    """A frozen dataclass with defaults, which all four functions take."""
    options = module.Options
    assert options() == options()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(options(), dataclasses.fields(options)[0].name, 1)
    first = {"card": [], "inventory": ["raw"], "read": ["raw"], "pictures": ["raw"]}
    for name, before in first.items():
        parameters = inspect.signature(getattr(module, name)).parameters
        assert list(parameters) == [*before, "options"]
        assert parameters["options"].default == options()


@pytest.mark.parametrize("name", ["flickr9k", "", "../flickr8k", "shapes.py", "_karpathy"])
def test_an_unknown_name_lists_the_known_ones(name):
    with refused("dataset", "one of cuhk_pedes, flickr30k, ", repr(name)):
        datasets.load(name)


# Checklists ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ways", "names"),
    [
        ((("a.zip",),), "a.zip"),
        ((("a/",), ("a.zip",)), "a/ or a.zip"),
        ((("a.txt", "b.txt", "c.txt"),), "a.txt, b.txt and c.txt"),
        ((("a.zip",), ("b.txt", "c.txt")), "a.zip, or b.txt and c.txt"),
    ],
)
def test_a_line_of_a_checklist_is_made_from_its_fields(ways, names):
    needed = Needed("the captions", ways)
    assert needed.names == names
    assert str(needed) == f"{names}: the captions"


# Options of a season -------------------------------------------------------------------------


def chosen(reader: str, options: dict) -> RawDataset:
    settings = DatasetSettings(reader=reader, options=options)
    return raw_dataset(params_of(datasets={"mine": settings}), "mine")


def test_options_of_the_season_go_over_the_defaults():
    dataset = chosen("shapes", {"train": 7})
    assert dataset.reader_options == datasets.load("shapes").Options(train=7)
    assert dataset.options == {"train": 7}, "manifests and cards hold what the season says"


def test_an_unknown_option_lists_the_known_ones():
    with refused("dataset mine: options", "train, val, test, seed", "'size'", kind=UserError):
        chosen("shapes", {"size": 3})


@pytest.mark.parametrize(
    ("reader", "options", "kind"),
    [
        ("shapes", {"train": "9"}, "int"),
        ("shapes", {"train": True}, "int"),
        ("people", {"test": 2.5}, "int"),
        ("cuhk_pedes", {"captions_per_image": "2"}, "int | None"),
        ("mscoco", {"restval": "no"}, "bool"),
        ("flickr30k", {"with_pictures": 0}, "bool"),
        ("flickr30k_entities", {"unrelated": "false"}, "bool"),
        ("folder", {"captions": 3}, "str | None"),
    ],
)
def test_an_option_of_another_type_is_refused(reader, options, kind):
    ((key, value),) = options.items()
    with refused(f"dataset mine: options.{key}", kind, repr(value), kind=UserError):
        chosen(reader, options)


@pytest.mark.parametrize(
    ("reader", "options", "key"),
    [
        ("shapes", {"train": 0}, "train"),
        ("flickr30k", {"split": "karpaty"}, "split"),
        ("flickr8k", {"annotations": "karpaty"}, "annotations"),
    ],
)
def test_a_value_that_the_reader_cannot_use_is_refused_before_anything_is_read(
    reader, options, key
):
    with refused(f"{reader}: option {key}", found=repr(options[key]), do="correct the option"):
        chosen(reader, options)

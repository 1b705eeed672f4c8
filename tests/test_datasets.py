"""What every module of datasets/ promises, and how they are found."""

import dataclasses
import inspect

import pytest
from refusals import refused

from benchmark.contracts import datasets
from benchmark.core.errors import UserError
from benchmark.data.raw_files import RawDataset, raw_dataset
from benchmark.season.parameters import DatasetSettings
from seasons import params_of


@pytest.fixture(params=datasets.names())
def module(request):
    return datasets.load(request.param)


def test_card_is_filled(module):
    card = module.card()
    assert isinstance(card, datasets.Card)
    assert all(
        text.strip() for text in (card.title, card.source, card.licence, card.split)
    )
    assert type(card.may_publish) is bool
    assert set(card.expected_images) <= set(datasets.SPLITS)
    for remote in card.remote:
        assert remote.urls and all(url.startswith("https://") for url in remote.urls)
        assert remote.sha256 is None or len(bytes.fromhex(remote.sha256)) == 32
    assert not card.remote or card.obtain.strip()
    for needed in card.checklist:
        assert needed.what.strip() and needed.ways and all(needed.ways)


def test_a_dataset_with_raw_files_tells_how_to_obtain_them(module, tmp_path):
    try:
        has_files = bool(module.inventory(tmp_path))
    except datasets.UserError:
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


@pytest.mark.parametrize(
    "name", ["flickr9k", "", "../flickr8k", "shapes.py", "_karpathy"]
)
def test_an_unknown_name_lists_the_known_ones(name):
    with refused("dataset", "one of cuhk_pedes, flickr30k, ", repr(name)):
        datasets.load(name)


# Options of a season ------------------------------------------------------------------


def chosen(reader: str, options: dict) -> RawDataset:
    settings = DatasetSettings(reader=reader, options=options)
    return raw_dataset(params_of(datasets={"mine": settings}), "mine")


def test_an_unknown_option_lists_the_known_ones():
    with refused(
        "dataset mine: options", "train, val, test, seed", "'size'", kind=UserError
    ):
        chosen("shapes", {"size": 3})

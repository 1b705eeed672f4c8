"""The models of a season: names of folders and files, and values that cannot be."""

import pytest
from pydantic import ValidationError

from benchmark.season.parameters import (
    RETRIEVED,
    SAMPLES,
    Fusion,
    ImageEncoder,
    ProposalEncoder,
    Season,
    SentenceEncoder,
    module_of,
)


@pytest.mark.parametrize(
    ("settings", "slug"),
    [
        (ImageEncoder(), "mobilenet_v2_224_g6_flip"),
        (ImageEncoder(flip=False, grid=7), "mobilenet_v2_224_g7"),
        (
            ImageEncoder(standardise=True, pixels=256),
            "mobilenet_v2_224_g6_flip_std_p256",
        ),
        (SentenceEncoder(), ""),
        (SentenceEncoder(size=6000), "6000"),
        (SentenceEncoder(centres=8, standardise=True), "c8_std"),
        (SentenceEncoder(hidden=512), "h512"),
        (SentenceEncoder(weights="infersent1.pkl"), "infersent1-pkl"),
        (
            SentenceEncoder(weights="x/MiniLM-L6-v2", masked=False),
            "minilm-l6-v2_unmasked",
        ),
    ],
)
def test_other_settings_have_another_folder(settings, slug):
    assert settings.slug == slug


@pytest.mark.parametrize(
    ("network", "module"),
    [
        ("drawn_cnn", "drawn_cnn"),
        ("timm_resnet50", "timm_cnn"),
        ("fasterrcnn_resnet50_fpn_v2", "faster_rcnn"),
        ("resnet152", "torchvision_cnn"),
    ],
)
def test_a_network_is_provided_by_a_module(network, module):
    assert module_of(network) == module


def test_git_keeps_what_is_in_the_folder_of_the_cell():
    folder = "data/cells/s/d/p/0"
    cell = Fusion(
        dataset="d",
        preset="p",
        seed=0,
        folder=folder,
        keeps=(SAMPLES,),
        how="average",
        members=[],
        parts=[],
    )
    assert (cell.key, cell.name, cell.inside) == ("d-p-0", "p/0", "s/d/p/0")
    assert cell.place(SAMPLES) == f"{folder}/scores/{SAMPLES}"
    assert cell.place(RETRIEVED) == f"data/samples/s/d/p/0/{RETRIEVED}"


def test_proposals_of_a_file_need_its_folder():
    with pytest.raises(ValidationError):
        ProposalEncoder(how="file")
    assert ProposalEncoder(how="file", boxes="boxes").count == 200


@pytest.mark.parametrize("path", ["~/x.npy", "/x.npy", "../x.npy", "a\0b"])
def test_features_lie_in_the_raw_folder(path):
    with pytest.raises(ValidationError, match="inside of"):
        ImageEncoder(features=path)


SEASON = {"title": "T", "datasets": {}, "presets": []}


@pytest.mark.parametrize("seeds", [[], [1, 1], [-1], ["0"]])
def test_seeds_are_distinct_numbers(seeds):
    with pytest.raises(ValidationError):
        Season(**SEASON, seeds=seeds)


@pytest.mark.parametrize("path", ["../mine.py", "~/mine.py", "mine.txt"])
def test_a_method_file_lies_inside_or_is_absolute(path):
    with pytest.raises(ValidationError):
        Season(**SEASON, seeds=[0], methods={"mine": path})

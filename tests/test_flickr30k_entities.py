"""The reader of Flickr30k Entities, on sixteen drawn pictures in the layout of the release."""

import dataclasses
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
from entities_release import (
    ALL_IDS,
    COUNTS,
    HEIGHT,
    NAMED,
    WIDTH,
    chains,
    expected_box,
    write_loose,
    write_zipped,
)

from benchmark.contracts.datasets import flickr30k_entities
from benchmark.contracts.datasets.flickr30k_entities import Options
from benchmark.core.command_line import run_stage
from benchmark.data import prepared_tables
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare
from benchmark.season.parameters import DatasetSettings
from seasons import params_of, write_params


@pytest.fixture
def loose(tmp_path) -> Path:
    """The release with its archive extracted, and the photographs."""
    write_loose(tmp_path / "loose")
    return tmp_path / "loose"


@pytest.fixture
def zipped(tmp_path, loose) -> Path:
    """The release as it is downloaded, and the photographs as .zip."""
    write_zipped(tmp_path / "zipped", loose)
    return tmp_path / "zipped"


@pytest.fixture(params=["loose", "zipped"])
def raw(request) -> Path:
    return request.getfixturevalue(request.param)


# What is read ------------------------------------------------------------------------------


def test_captions_are_the_sentences_without_markup(raw):
    captions = flickr30k_entities.read(raw).captions
    assert captions["caption_id"].tolist() == [
        f"{i}.jpg#{k}" for i, k in product(ALL_IDS, range(5))
    ]
    assert captions["image_id"].tolist() == [i for i, _ in product(ALL_IDS, range(5))]
    assert captions["text"].tolist()[10:15] == [
        "Two young guys in red , `` loud '' shirts stand in the yard .",
        "A man's shirt is picture 2 .",
        "It is a joke to the 2 men, both .",
        "Nobody is named in picture 2 - caf\u00e9 \u2028 .",
        "Shirts",
    ]


def test_regions_are_the_phrases_of_chains_with_boxes(raw):
    regions = flickr30k_entities.read(raw).regions
    expected = [
        (
            image_id,
            f"{image_id}.jpg#{k}",
            words,
            *expected_box(row, who),
            f"{image_id}/{chain[who]}",
        )
        for row, image_id in enumerate(ALL_IDS)
        for chain in [chains(row)]
        for k, words, who in NAMED
    ]
    assert list(regions.itertuples(index=False, name=None)) == expected
    columns = ["image_id", "caption_id", "phrase", "x0", "y0", "x1", "y1", "chain"]
    assert regions.columns.tolist() == columns


def test_a_chain_has_the_union_of_its_boxes_and_an_object_may_belong_to_two(loose):
    regions = flickr30k_entities.read(loose).regions
    first = regions.iloc[0]
    # people: (1, 3, 12, 30), (15, 2, 40, 31) and, with the shirts, (19, 12, 60, 20)
    assert first[["x0", "y0", "x1", "y1"]].tolist() == [0, 1, 60, 31]
    second = regions.iloc[1]  # shirts: (2, 10, 11, 20) and (19, 12, 60, 20)
    assert second[["x0", "y0", "x1", "y1"]].tolist() == [1, 9, 60, 20]


def test_what_is_left_out_is_counted(raw):
    notes = flickr30k_entities.read(raw).notes
    assert "16 phrases name nothing visible and are no regions." in notes
    assert "32 phrases name the scene or what has no box; no regions." in notes
    assert len(notes) == 3  # nothing is said of what does not occur


def test_archive_and_folders_give_the_same_tables(loose, zipped):
    of_folders, of_archive = flickr30k_entities.read(loose), flickr30k_entities.read(zipped)
    for name in ("images", "captions", "regions"):
        pd.testing.assert_frame_equal(getattr(of_folders, name), getattr(of_archive, name))
    assert of_folders.notes == of_archive.notes


def test_unrelated_captions_can_be_left_out_with_their_phrases(raw):
    whole = flickr30k_entities.read(raw)
    tables = flickr30k_entities.read(raw, Options(unrelated=False))
    lost = {f"{ALL_IDS[3]}.jpg#4", f"{ALL_IDS[7]}.jpg#0"}  # sentences are counted from 1 there
    assert set(whole.captions["caption_id"]) - set(tables.captions["caption_id"]) == lost
    assert len(whole.captions) - len(tables.captions) == 2
    assert not set(tables.regions["caption_id"]) & lost
    assert len(whole.regions) - len(tables.regions) == 1 + 2
    assert "2 captions that UNRELATED_CAPTIONS lists are left out." in tables.notes


# Through the stages ------------------------------------------------------------------------


@pytest.fixture
def active(tmp_path, monkeypatch) -> None:
    """Stages run in a fresh folder, with a card that expects the small numbers."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    captions = {split: 5 * count for split, count in COUNTS.items()}
    card = dataclasses.replace(
        flickr30k_entities.CARD, expected_images=COUNTS, expected_captions=captions
    )
    monkeypatch.setattr(flickr30k_entities, "CARD", card)
    activate()


def activate(**options: bool) -> None:
    settings = DatasetSettings(reader="flickr30k_entities", options=options)
    write_params(params_of(datasets={"flickr30k_entities": settings}))


def run(stage, *words: str) -> int:
    return run_stage("", stage.configure, stage.main, ["flickr30k_entities", *words])


@pytest.mark.usefixtures("active")
def test_fetch_and_prepare(raw):
    assert run(fetch, "--source", str(raw)) == 0
    assert run(prepare) == 0
    data = prepared_tables.read("flickr30k_entities")
    assert {split: count["images"] for split, count in data.card["counts"].items() if count} == {
        **COUNTS,
        "unused": 0,
    }
    assert data.card["split"] == "entities" and data.card["may_publish"] is False
    assert set(data.images["width"]) == {WIDTH} and set(data.images["height"]) == {HEIGHT}
    regions = pd.read_parquet(prepared_tables.ROOT / "flickr30k_entities" / "regions.parquet")
    assert len(regions) == len(NAMED) * len(ALL_IDS) and regions["phrase_id"].is_unique
    assert regions["chain"].iloc[0] == f"{ALL_IDS[0]}/1"
    box = regions[["x0", "y0", "x1", "y1"]].iloc[1]
    assert box.tolist() == [1.0, 9.0, 60.0, 20.0]

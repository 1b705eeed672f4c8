"""The reader of Flickr30k Entities, on sixteen drawn pictures in the layout of the release."""

import dataclasses
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
import yaml
from entities_release import (
    ALL_IDS,
    COUNTS,
    HEIGHT,
    IDS,
    NAMED,
    WIDTH,
    chains,
    expected_box,
    write_loose,
    write_zipped,
    xml_of,
)
from PIL import Image
from refusals import check, refusal, refused

import benchmark.papers.printed_tables
from benchmark.core.command_line import run_stage
from benchmark.data import prepared_tables
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare
from benchmark.season.parameter_files import write_params
from benchmark.season.parameters import DatasetSettings
from datasets import flickr30k_entities
from datasets.flickr30k_entities import Options
from seasons import params_of


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


def test_images_are_those_of_the_lists_in_their_order(raw):
    images = flickr30k_entities.read(raw).images
    assert images.columns.tolist() == ["image_id", "file", "split", "group"]
    assert images["image_id"].tolist() == ALL_IDS
    assert images["split"].tolist() == [split for split, ids in IDS.items() for _ in ids]
    assert images["file"].tolist() == [f"{image_id}.jpg" for image_id in ALL_IDS]
    assert images["group"].tolist() == ALL_IDS


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


def test_phrases_stand_in_their_captions(loose):
    tables = flickr30k_entities.read(loose)
    text = tables.captions.set_index("caption_id")["text"]
    assert all(row.phrase in text[row.caption_id] for row in tables.regions.itertuples())


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


def test_without_pictures_the_files_have_no_name(zipped):
    whole = flickr30k_entities.read(zipped)
    (zipped / "flickr30k-images.zip").unlink()
    tables = flickr30k_entities.read(zipped, Options(with_pictures=False))
    assert set(tables.images["file"]) == {""}
    pd.testing.assert_frame_equal(tables.regions, whole.regions)
    do = "place flickr30k-images/ or flickr30k-images.zip, and drop the option"
    with refused(expected="a picture", found="nothing", do=do):
        flickr30k_entities.pictures(zipped, Options(with_pictures=False))("")
    for function in (flickr30k_entities.inventory, flickr30k_entities.pictures):
        with refused(zipped, "flickr30k-images/ or flickr30k-images.zip", "no pictures"):
            function(zipped)


def test_pictures_are_the_same_from_both_layouts(loose, zipped):
    packed, folder = flickr30k_entities.pictures(zipped), flickr30k_entities.pictures(loose)
    for image_id in ALL_IDS[::5]:
        picture = packed(f"{image_id}.jpg")
        assert (picture.mode, picture.size) == ("RGB", (WIDTH, HEIGHT))
        assert picture.tobytes() == folder(f"{image_id}.jpg").tobytes()


def names(paths: list[Path], raw: Path) -> list[str]:
    return sorted(path.relative_to(raw).as_posix() for path in paths)


def test_inventory(loose, zipped):
    lists = ["train.txt", "val.txt", "test.txt"]
    archives = ["annotations.zip", "flickr30k-images.zip"]
    assert names(flickr30k_entities.inventory(zipped), zipped) == sorted(archives + lists)
    options = Options(unrelated=False, with_pictures=False)
    related = flickr30k_entities.inventory(zipped, options)
    assert names(related, zipped) == sorted([archives[0], *lists, "UNRELATED_CAPTIONS"])
    kinds = ("Sentences/{}.txt", "Annotations/{}.xml", "flickr30k-images/{}.jpg")
    every = [kind.format(image_id) for kind, image_id in product(kinds, ALL_IDS)]
    assert names(flickr30k_entities.inventory(loose), loose) == sorted(every + lists)


def test_card():
    card = flickr30k_entities.card()
    assert card.expected_images == {"train": 29783, "val": 1000, "test": 1000}
    assert sum(card.expected_captions.values()) == 158915
    related = flickr30k_entities.card(Options(unrelated=False))
    assert sum(related.expected_captions.values()) == 158915 - 21
    assert related.split == card.split and card.form and card.raw_gib > 4
    assert related.checklist[-1].names == "UNRELATED_CAPTIONS"
    features = flickr30k_entities.card(Options(with_pictures=False))
    assert not features.form and "images" not in features.obtain
    assert [needed.names for needed in features.checklist] == [
        "annotations.zip, or Sentences/ and Annotations/",
        "train.txt, val.txt and test.txt",
    ]
    assert {remote.name for remote in card.remote} >= {"annotations.zip", "test.txt"}


def test_the_split_has_the_name_that_the_paper_uses():
    papers = Path(benchmark.papers.printed_tables.__file__).parent
    paper = yaml.safe_load((papers / "two_branch.yaml").read_text(encoding="utf-8"))
    assert flickr30k_entities.card().split == paper["paper"]["splits"]["flickr30k_entities"]


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


@pytest.mark.usefixtures("active")
def test_prepare_without_pictures(zipped, capsys):
    (zipped / "flickr30k-images.zip").unlink()
    error = refusal(fetch, "flickr30k_entities", "--source", zipped)
    check(error, expected="flickr30k-images/ or flickr30k-images.zip", found="no pictures")
    checklist = capsys.readouterr().err.splitlines()
    assert checklist[0].startswith("[ ] flickr30k-images/ or") and checklist[1].startswith("[x]")
    activate(with_pictures=False)
    assert run(fetch, "--source", str(zipped)) == 0
    assert run(prepare) == 0
    assert set(prepared_tables.read("flickr30k_entities").images["file"]) == {""}


@pytest.mark.usefixtures("active")
def test_pictures_of_another_size_than_the_xml_says_are_refused(loose):
    path = loose / "flickr30k-images" / f"{ALL_IDS[6]}.jpg"
    Image.new("RGB", (WIDTH // 2, HEIGHT)).save(path)
    assert run(fetch, "--source", str(loose)) == 0
    error = refusal(prepare, "flickr30k_entities")
    assert ALL_IDS[6] in error.where and error.where.endswith(": box")
    check(error, expected=f"a box in its picture of {WIDTH // 2} x {HEIGHT}")


@pytest.mark.usefixtures("active")
def test_a_missing_picture_stops_prepare_with_one_line(loose):
    (loose / "flickr30k-images" / f"{ALL_IDS[6]}.jpg").unlink()
    assert run(fetch, "--source", str(loose)) == 0
    check(refusal(prepare, "flickr30k_entities"), f"{ALL_IDS[6]}.jpg", "a whole picture")


@pytest.mark.usefixtures("active")
def test_a_missing_annotation_stops_fetch(loose, capsys):
    (loose / xml_of(3)).unlink()
    error = refusal(fetch, "flickr30k_entities", "--source", loose)
    check(error, xml_of(3), "a raw file", "nothing (1 of")
    checklist = capsys.readouterr().err.splitlines()
    assert all(entry.startswith("[x] ") for entry in checklist)


@pytest.mark.usefixtures("active")
def test_an_empty_list_stops_prepare(loose):
    (loose / "val.txt").write_bytes(b"")
    assert run(fetch, "--source", str(loose)) == 0
    check(refusal(prepare, "flickr30k_entities"), "split val", "at least one image", "none")

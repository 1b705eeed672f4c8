"""The reader of CUHK-PEDES, on two dozen drawn pictures in the layout that one gets."""

import json
from pathlib import Path

import pytest
from layouts import draw, in_one_note
from refusals import refused

from benchmark.contracts.datasets import cuhk_pedes
from benchmark.contracts.datasets.cuhk_pedes import Options

# Person -> split; the folders, suffixes and sizes are as mixed as those of the release.
SPLIT_OF = {
    1: "train",
    2: "train",
    3: "train",
    7: "train",
    8: "val",
    9: "val",
    10: "test",
}
FOLDERS = ("cam_a/{}_45.bmp", "CUHK01/{}.png", "Market/{}_c1s1.jpg")
WITH_TEN = "Market/10_c1s1.jpg"  # as one test image of the release has


def file_of(person: int, k: int) -> str:
    return FOLDERS[k].format(person)


def sentences(person: int, k: int) -> list[str]:
    number = 10 if file_of(person, k) == WITH_TEN else 2
    return [f"Person {person} in picture {k}, said {n} times." for n in range(number)]


def items() -> list[dict]:
    """The JSON as it is published, with the keys in its order."""
    return [
        {
            "split": split,
            "captions": sentences(person, k),
            "file_path": file_of(person, k),
            "processed_tokens": [text.lower().split() for text in sentences(person, k)],
            "id": person,
        }
        for person, split in SPLIT_OF.items()
        for k in range(3)
    ]


@pytest.fixture
def raw(tmp_path) -> Path:
    for number, item in enumerate(items()):
        draw(tmp_path / "imgs" / item["file_path"], number, (10 + number, 30))
    # comes with the pictures; of no use
    (tmp_path / "caption_all.json").write_text("[]")
    write(tmp_path, items())
    return tmp_path


def write(raw: Path, data: object) -> None:
    (raw / "reid_raw.json").write_text(json.dumps(data))


def test_tables_have_images_persons_and_captions(raw):
    tables = cuhk_pedes.read(raw)
    images = tables.images.set_index("image_id")
    assert tables.images["file"].tolist() == [item["file_path"] for item in items()]
    facts = {"file": "cam_a/8_45.bmp", "split": "val", "group": "8"}
    assert images.loc["cam_a/8_45"].to_dict() == facts
    assert images.groupby("group")["split"].agg(list).to_dict() == {
        str(person): [split] * 3 for person, split in SPLIT_OF.items()
    }
    captions = tables.captions[tables.captions["image_id"] == "CUHK01/3"]
    assert captions["text"].tolist() == sentences(3, 1)
    assert captions["caption_id"].tolist() == ["CUHK01/3#0", "CUHK01/3#1"]
    assert tables.regions.empty


@pytest.mark.parametrize(("number", "kept"), [(None, 10), (2, 2), (1, 1), (30, 10)])
def test_as_many_captions_per_image_are_kept_as_asked(raw, number, kept):
    tables = cuhk_pedes.read(raw, Options(captions_per_image=number))
    captions = tables.captions
    of_ten = captions[captions["image_id"] == "Market/10_c1s1"]
    assert of_ten["text"].tolist() == sentences(10, 2)[:kept]
    assert len(captions) == 20 * min(number or 2, 2) + kept
    assert in_one_note(tables, "4 (train), 2 (val), 1 (test)")
    assert in_one_note(tables, "1 images", f": {number or 'all'}.")
    dropped = {
        1: ("29 captions", " cam_a/1_45, CUHK01/1, Market/1_c1s1"),
        2: ("8 captions", " Market/10_c1s1."),
    }
    assert in_one_note(tables, "left out", *dropped.get(number, ())) == (
        number in dropped
    )


def test_keys_that_are_not_used_are_told(raw):
    assert not any("not used" in note for note in cuhk_pedes.read(raw).notes)
    data = items()
    data[3] |= {"is_rejected": True, "camera": {"id": 2, "night": False}}
    write(raw, data)
    keys = "is_rejected, camera.id, camera.night"
    assert in_one_note(cuhk_pedes.read(raw), "reid_raw.json: ", f": {keys}.")


def test_counts_of_the_card_add_up_to_the_published():
    """Images, captions and their surplus add up to what is published of the whole."""
    every, two = cuhk_pedes.card(), cuhk_pedes.card(Options(captions_per_image=2))
    assert sum(every.expected_images.values()) == 40206
    assert sum(every.expected_captions.values()) == 80440
    assert two.expected_captions == {k: 2 * n for k, n in every.expected_images.items()}
    assert sum(two.expected_captions.values()) == 80412
    assert cuhk_pedes.card(Options(captions_per_image=1)).expected_captions == {}
    # Of later releases as their authors state them: images in all, persons times five
    # of RSTPReid.
    icfg, rstp = (
        cuhk_pedes.card(Options(release=name)) for name in ("ICFG-PEDES", "RSTPReid")
    )
    assert (
        sum(icfg.expected_images.values())
        == sum(icfg.expected_captions.values())
        == 54522
    )
    assert sum(rstp.expected_images.values()) == 5 * (3701 + 200 + 200) == 20505
    assert rstp.expected_captions == {k: 2 * n for k, n in rstp.expected_images.items()}
    taken = cuhk_pedes.card(Options(release="ICFG-PEDES", val=200))
    assert (
        taken.expected_images == {"test": 19848}
        and "200 persons of train" in taken.split
    )
    splits = {icfg.split, rstp.split, taken.split, cuhk_pedes.card().split}
    assert len(splits) == 4  # no number on one is taken for one on another


# Later releases of the same layout ----------------------------------------------------


def place_release(raw: Path, release: str) -> None:
    """The same persons: ICFG-PEDES has no val and one caption."""
    data = items()
    for item in data:
        if release == "ICFG-PEDES":
            item["split"] = "test" if item["split"] == "test" else "train"
            item["captions"] = item["captions"][:1]
        else:
            item["img_path"] = item.pop("file_path")
            item["captions"] = item["captions"][:2]
    (raw / "reid_raw.json").unlink()
    (raw / cuhk_pedes.RELEASES[release].annotations).write_text(json.dumps(data))


def test_rstpreid_gives_the_same_tables(raw):
    options = Options(release="RSTPReid")
    before = cuhk_pedes.read(raw, Options(captions_per_image=2))
    place_release(raw, "RSTPReid")
    tables = cuhk_pedes.read(raw, options)
    assert tables.images.equals(before.images) and tables.captions.equals(
        before.captions
    )
    assert cuhk_pedes.pictures(raw, options)("CUHK01/3.png").size == (17, 30)
    assert cuhk_pedes.inventory(raw, options)[0].name == "data_captions.json"
    with refused("option val", "none, as RSTPReid has a split val", "2"):
        Options(release="RSTPReid", val=2)
    with refused("option release", "CUHK-PEDES, ICFG-PEDES, RSTPReid", "'Market'"):
        Options(release="Market")
    with refused(found="nothing", do="place reid_raw.json"):
        cuhk_pedes.read(raw)


def test_icfg_pedes_takes_val_from_train(raw):
    place_release(raw, "ICFG-PEDES")
    whole = cuhk_pedes.read(raw, Options(release="ICFG-PEDES")).images
    images = cuhk_pedes.read(raw, Options(release="ICFG-PEDES", val=2)).images
    persons = images.groupby("split")["group"].nunique()
    assert persons.to_dict() == {"train": 4, "val": 2, "test": 1}
    assert images.groupby("group")["split"].nunique().max() == 1
    rest = images["split"].replace("val", "train")
    assert (rest == whole["split"]).all() and set(whole["split"]) == {"train", "test"}
    # One more person of val leaves the others there.
    more = cuhk_pedes.read(raw, Options(release="ICFG-PEDES", val=3)).images
    assert (more["split"] == "val")[images["split"] == "val"].all()
    with refused("option val", "more than 6 persons in train", "6 persons in train"):
        cuhk_pedes.read(raw, Options(release="ICFG-PEDES", val=6))


# Malformed variants -------------------------------------------------------------------


FAULTS = [
    ("split", None, "split", "str", "None"),
    ("split", "trian", "split", "one of train, val, test", "'trian'"),
    ("captions", "A man.", "captions", "list", "'A man.'"),
    ("captions", [], "captions", "at least one", "none"),
    ("captions", ["A man.", " "], "captions[1]", "a sentence", "' '"),
    ("captions", ["A\nman."], "captions[0]", "without tabs", "'A\\nman.'"),
    ("id", True, "id", "int", "True"),
]


@pytest.mark.parametrize(("key", "value", "where", "expected", "found"), FAULTS)
def test_a_malformed_item_is_named(raw, key, value, where, expected, found):
    data = items()
    if value is None:
        del data[4][key]
    else:
        data[4][key] = value
    write(raw, data)
    with refused(f"reid_raw.json: [4] CUHK01/2.png: {where}", expected, found):
        cuhk_pedes.read(raw)


def test_a_person_in_two_splits_is_refused(raw):
    data = items()
    data[5]["split"] = "test"
    write(raw, data)
    where, found = (
        "[5] Market/2_c1s1.jpg: id 2",
        "test, but train in reid_raw.json: [3] cam_a/2_45",
    )
    with refused(where, "one split", found):
        cuhk_pedes.read(raw)

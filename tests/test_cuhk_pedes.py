"""The reader of CUHK-PEDES, on two dozen drawn pictures in the layout that one gets."""

import json
import pickle
import re
from pathlib import Path

import pytest
from PIL import Image

from benchmark.core.command_line import run_stage
from benchmark.data import prepared_tables
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare
from benchmark.prepare.table_checks import check_tables
from benchmark.season.parameters import DatasetSettings
from benchmark.season.parameter_files import write_params
from datasets import DataError, cuhk_pedes
from seasons import params_of

# Person -> split; the folders, suffixes and sizes are as mixed as those of the release.
SPLIT_OF = {1: "train", 2: "train", 3: "train", 7: "train", 8: "val", 9: "val", 10: "test"}
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


def place(folder: Path) -> None:
    for number, item in enumerate(items()):
        path = folder / "imgs" / item["file_path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (10 + number, 30), (10 * number, 99, 0)).save(path)
    (folder / "reid_raw.json").write_text(json.dumps(items()))
    (folder / "caption_all.json").write_text("[]")  # comes with the pictures; of no use


@pytest.fixture
def raw(tmp_path) -> Path:
    place(tmp_path / "raw")
    return tmp_path / "raw"


def write(raw: Path, data: object) -> None:
    (raw / "reid_raw.json").write_text(json.dumps(data))


def test_tables(raw):
    tables = cuhk_pedes.read(raw)
    images = tables.images.set_index("image_id")
    assert tables.images["file"].tolist() == [item["file_path"] for item in items()]
    assert images.loc["cam_a/8_45"].to_dict() == {
        "file": "cam_a/8_45.bmp",
        "split": "val",
        "group": "8",
    }
    assert images.groupby("group")["split"].agg(list).to_dict() == {
        str(person): [split] * 3 for person, split in SPLIT_OF.items()
    }
    captions = tables.captions[tables.captions["image_id"] == "CUHK01/3"]
    assert captions["text"].tolist() == sentences(3, 1)
    assert captions["caption_id"].tolist() == ["CUHK01/3#0", "CUHK01/3#1"]
    assert tables.regions.empty


@pytest.mark.parametrize(("number", "found"), [(None, 10), (2, 2), (1, 1), (30, 10)])
def test_captions_per_image(raw, number, found):
    captions = cuhk_pedes.read(raw, captions_per_image=number).captions
    assert (
        captions[captions["image_id"] == "Market/10_c1s1"]["text"].tolist()
        == (sentences(10, 2)[:found])
    )
    assert len(captions) == 20 * min(number or 2, 2) + found


def test_irregularities_are_told(raw):
    all_notes = " ".join(cuhk_pedes.read(raw).notes)
    assert "4 (train), 2 (val), 1 (test)" in all_notes
    assert "1 images have more than two captions; used of each image: all." in all_notes
    assert "used of each image: 2." in " ".join(cuhk_pedes.read(raw, captions_per_image=2).notes)


def test_counts_of_the_card():
    """Images, captions and their surplus add up to what is published of the whole."""
    every, two = cuhk_pedes.card(), cuhk_pedes.card(captions_per_image=2)
    assert sum(every.expected_images.values()) == 40206
    assert sum(every.expected_captions.values()) == 80440
    assert two.expected_captions == {k: 2 * n for k, n in every.expected_images.items()}
    assert sum(two.expected_captions.values()) == 80412
    assert cuhk_pedes.card(captions_per_image=1).expected_captions == {}


def test_card_is_that_of_a_gated_dataset_of_persons():
    card = cuhk_pedes.card()
    assert card.ways == ("t2i",) and card.split == "official" and not card.may_publish
    assert not card.remote and card.form.startswith("https://") and "@" in card.obtain
    assert [line.split(": ")[0] for line in card.checklist] == [
        "reid_raw.json or CUHK-PEDES/reid_raw.json",
        "imgs/ or CUHK-PEDES/imgs/",
    ]


def test_folder_of_the_archive(raw, tmp_path):
    expected = cuhk_pedes.read(raw)
    place(tmp_path / "other" / "CUHK-PEDES")
    found = cuhk_pedes.read(tmp_path / "other")
    assert found.images.equals(expected.images) and found.captions.equals(expected.captions)
    assert cuhk_pedes.pictures(tmp_path / "other")("cam_a/1_45.bmp").size == (10, 30)


def test_annotations_beside_the_folder_of_the_archive(raw, tmp_path):
    place(tmp_path / "other" / "CUHK-PEDES")
    (tmp_path / "other/CUHK-PEDES/reid_raw.json").rename(tmp_path / "other/reid_raw.json")
    assert cuhk_pedes.read(tmp_path / "other").images.equals(cuhk_pedes.read(raw).images)


def test_inventory(raw):
    found = {path.relative_to(raw).as_posix() for path in cuhk_pedes.inventory(raw)}
    assert found == {"reid_raw.json"} | {f"imgs/{item['file_path']}" for item in items()}


def test_pictures_are_rgb_and_travel_to_other_processes(raw):
    path = raw / "imgs/cam_a/1_45.bmp"
    Image.open(path).convert("L").save(path)
    open_picture = pickle.loads(pickle.dumps(cuhk_pedes.pictures(raw)))
    assert open_picture("cam_a/1_45.bmp").mode == "RGB"
    assert open_picture("CUHK01/1.png").size == (11, 30)


# Malformed variants ------------------------------------------------------------------------


def refused(raw: Path, match: str, **options) -> None:
    with pytest.raises(DataError, match=match) as error:
        cuhk_pedes.read(raw, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["reid_raw.json", "imgs"])
def test_missing_file_or_folder(raw, name):
    (raw / name).rename(raw / "elsewhere")
    with pytest.raises(DataError, match=f"raw: no {name}; expected it there or in CUHK-PEDES/"):
        cuhk_pedes.inventory(raw)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b'[{"split": "train", ', "reid_raw.json: not JSON"),
        (b"", "reid_raw.json: not JSON"),
        (b"\xff\xfe", "reid_raw.json: .*damaged"),
        (b'{"images": []}', "expected a list of items, found {'images'"),
        (b"[]", r"expected a list of items, found \[\]"),
        (b"[3]", r"reid_raw.json: \[0\]: file_path: expected str, found None"),
    ],
)
def test_annotations_that_are_no_list(raw, content, match):
    (raw / "reid_raw.json").write_bytes(content)
    refused(raw, match)


FAULTS = [
    ("split", None, "split: expected str, found None"),
    ("split", "trian", "split: expected one of train, val, test, found 'trian'"),
    ("captions", None, "captions: expected list, found None"),
    ("captions", "A man.", "captions: expected list, found 'A man.'"),
    ("captions", [], "captions: none; expected at least one"),
    ("captions", ["A man.", " "], "captions[1]: expected a sentence, found ' '"),
    ("captions", ["A man.", 3], "captions[1]: expected a sentence, found 3"),
    ("captions", ["A\tman."], "captions[0]: expected one line without tabs, found 'A\\tman.'"),
    ("captions", ["A\nman."], "captions[0]: expected one line without tabs, found 'A\\nman.'"),
    ("id", None, "id: expected int, found None"),
    ("id", "7", "id: expected int, found '7'"),
    ("id", True, "id: expected int, found True"),
]


@pytest.mark.parametrize(("key", "value", "fault"), FAULTS)
def test_malformed_item(raw, key, value, fault):
    data = items()
    if value is None:
        del data[4][key]
    else:
        data[4][key] = value
    write(raw, data)
    refused(raw, re.escape(f"reid_raw.json: [4] CUHK01/2.png: {fault}"))


@pytest.mark.parametrize("file", ["../a.jpg", "/etc/a.jpg", "b/../../a.jpg", "a\\b.jpg", "cam_a"])
def test_path_outside_the_pictures(raw, file):
    data = items()
    data[2]["file_path"] = file
    write(raw, data)
    refused(raw, re.escape("[2]: file_path: expected a picture below imgs/, found"))


def test_person_in_two_splits(raw):
    data = items()
    data[5]["split"] = "test"
    write(raw, data)
    refused(
        raw,
        r"\[5\] Market/2_c1s1.jpg: id 2 is in the split test, but "
        r"reid_raw.json: \[3\] cam_a/2_45.bmp has it in train; expected one split a person",
    )


@pytest.mark.parametrize("file", ["cam_a/1_45.bmp", "cam_a/1_45.jpg", "cam_a//1_45.bmp"])
def test_picture_twice(raw, file):
    data = items()
    data[7]["file_path"] = file
    write(raw, data)
    refused(raw, r"\[7\]: file_path: 'cam_a/1_45.*' has the name of reid_raw.json: \[0\]")


@pytest.mark.parametrize("number", [0, -1, 2.0, "2", True])
@pytest.mark.parametrize(
    "offer", [cuhk_pedes.inventory, cuhk_pedes.read, cuhk_pedes.pictures, cuhk_pedes.card]
)
def test_bad_option(raw, offer, number):
    places = () if offer is cuhk_pedes.card else (raw,)
    with pytest.raises(DataError, match="option captions_per_image must be null or a whole"):
        offer(*places, captions_per_image=number)


def test_counts_that_disagree_with_the_card(raw, monkeypatch):
    with pytest.raises(DataError, match="split train: expected 34054 images, found 12"):
        check_tables(cuhk_pedes.read(raw), cuhk_pedes.card())
    monkeypatch.setattr(cuhk_pedes, "IMAGES", {"train": 12, "val": 6, "test": 3})
    with pytest.raises(DataError, match="split train: expected 68126 captions, found 24"):
        check_tables(cuhk_pedes.read(raw), cuhk_pedes.card())


# Through the stages ------------------------------------------------------------------------


@pytest.fixture
def active(tmp_path, monkeypatch) -> None:
    """Stages run in a fresh folder, with a card that expects the small numbers."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(cuhk_pedes, "IMAGES", {"train": 12, "val": 6, "test": 3})
    counts = {2: {"train": 24, "val": 12, "test": 6}}
    monkeypatch.setattr(cuhk_pedes, "CAPTIONS", counts)
    options = {"captions_per_image": 2}
    write_params(
        params_of(datasets={"cuhk_pedes": DatasetSettings(reader="cuhk_pedes", options=options)})
    )


def run(stage, *words: str) -> int:
    return run_stage("", stage.configure, stage.main, ["cuhk_pedes", *words])


@pytest.mark.usefixtures("active")
def test_fetch_and_prepare(raw):
    assert run(fetch, "--source", str(raw)) == 0
    assert run(prepare) == 0
    data = prepared_tables.read("cuhk_pedes")
    assert data.images["group"].nunique() == len(SPLIT_OF)
    assert data.images[data.images["image_id"] == "cam_a/1_45"]["width"].item() == 10
    assert len(data.captions) == 42
    assert data.card["counts"]["test"]["captions"] == 6


@pytest.mark.usefixtures("active")
def test_picture_that_is_listed_but_not_there(raw, capsys):
    (raw / "imgs/Market/2_c1s1.jpg").unlink()
    assert run(fetch, "--source", str(raw)) == 2
    *checklist, line = capsys.readouterr().err.splitlines()
    assert "Market/2_c1s1.jpg: not found; 1 of 22 raw files are missing" in line
    assert len(checklist) == 2 and all(one.startswith("[x] ") for one in checklist)


@pytest.mark.usefixtures("active")
def test_picture_that_is_damaged(raw, capsys):
    (raw / "imgs/CUHK01/3.png").write_bytes(b"not a picture")
    assert run(fetch, "--source", str(raw)) == 0
    assert run(prepare) == 2
    line = capsys.readouterr().err
    assert "CUHK01/3.png: empty or not a picture" in line and line.count("\n") == 1

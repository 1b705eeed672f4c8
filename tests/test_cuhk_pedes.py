"""The reader of CUHK-PEDES, on two dozen drawn pictures in the layout that one gets."""

import json
import pickle
from pathlib import Path

import pytest
from PIL import Image
from refusals import check, refusal, refused

from benchmark.core.command_line import run_stage
from benchmark.data import prepared_tables
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare
from benchmark.prepare.table_checks import check_tables
from benchmark.season.parameter_files import write_params
from benchmark.season.parameters import DatasetSettings
from datasets import cuhk_pedes
from datasets.cuhk_pedes import Options
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


@pytest.mark.parametrize(("number", "kept"), [(None, 10), (2, 2), (1, 1), (30, 10)])
def test_captions_per_image(raw, number, kept):
    captions = cuhk_pedes.read(raw, Options(captions_per_image=number)).captions
    assert (
        captions[captions["image_id"] == "Market/10_c1s1"]["text"].tolist()
        == (sentences(10, 2)[:kept])
    )
    assert len(captions) == 20 * min(number or 2, 2) + kept


def test_irregularities_are_told(raw):
    all_notes = " ".join(cuhk_pedes.read(raw).notes)
    assert "4 (train), 2 (val), 1 (test)" in all_notes
    assert "1 images have more than two captions; used of each image: all." in all_notes
    two = cuhk_pedes.read(raw, Options(captions_per_image=2))
    assert "used of each image: 2." in " ".join(two.notes)


def test_counts_of_the_card():
    """Images, captions and their surplus add up to what is published of the whole."""
    every, two = cuhk_pedes.card(), cuhk_pedes.card(Options(captions_per_image=2))
    assert sum(every.expected_images.values()) == 40206
    assert sum(every.expected_captions.values()) == 80440
    assert two.expected_captions == {k: 2 * n for k, n in every.expected_images.items()}
    assert sum(two.expected_captions.values()) == 80412
    assert cuhk_pedes.card(Options(captions_per_image=1)).expected_captions == {}


def test_card_is_that_of_a_gated_dataset_of_persons():
    card = cuhk_pedes.card()
    assert card.ways == ("t2i",) and card.split == "official" and not card.may_publish
    assert not card.remote and card.form.startswith("https://") and "@" in card.obtain
    assert [needed.names for needed in card.checklist] == [
        "reid_raw.json or CUHK-PEDES/reid_raw.json",
        "imgs/ or CUHK-PEDES/imgs/",
    ]


def test_folder_of_the_archive(raw, tmp_path):
    expected = cuhk_pedes.read(raw)
    place(tmp_path / "other" / "CUHK-PEDES")
    tables = cuhk_pedes.read(tmp_path / "other")
    assert tables.images.equals(expected.images) and tables.captions.equals(expected.captions)
    assert cuhk_pedes.pictures(tmp_path / "other")("cam_a/1_45.bmp").size == (10, 30)


def test_annotations_beside_the_folder_of_the_archive(raw, tmp_path):
    place(tmp_path / "other" / "CUHK-PEDES")
    (tmp_path / "other/CUHK-PEDES/reid_raw.json").rename(tmp_path / "other/reid_raw.json")
    assert cuhk_pedes.read(tmp_path / "other").images.equals(cuhk_pedes.read(raw).images)


def test_inventory(raw):
    files = {path.relative_to(raw).as_posix() for path in cuhk_pedes.inventory(raw)}
    assert files == {"reid_raw.json"} | {f"imgs/{item['file_path']}" for item in items()}


def test_pictures_are_rgb_and_travel_to_other_processes(raw):
    path = raw / "imgs/cam_a/1_45.bmp"
    Image.open(path).convert("L").save(path)
    open_picture = pickle.loads(pickle.dumps(cuhk_pedes.pictures(raw)))
    assert open_picture("cam_a/1_45.bmp").mode == "RGB"
    assert open_picture("CUHK01/1.png").size == (11, 30)


# Malformed variants ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["reid_raw.json", "imgs"])
def test_missing_file_or_folder(raw, name):
    (raw / name).rename(raw / "elsewhere")
    with refused(raw, f"{name}, there or in CUHK-PEDES/", "nothing", f"place {name}"):
        cuhk_pedes.inventory(raw)


@pytest.mark.parametrize(
    ("content", "where", "expected", "found"),
    [
        (b'[{"split": "train", ', "reid_raw.json", "JSON", "something else"),
        (b"", "reid_raw.json", "JSON", "something else"),
        (b"\xff\xfe", "reid_raw.json", "UTF-8", "damage"),
        (b'{"images": []}', "reid_raw.json", "a list of items", "{'images'"),
        (b"[]", "reid_raw.json", "a list of items", "[]"),
        (b"[3]", "reid_raw.json: [0]: file_path", "str", "None"),
    ],
)
def test_annotations_that_are_no_list(raw, content, where, expected, found):
    (raw / "reid_raw.json").write_bytes(content)
    with refused(where, expected, found):
        cuhk_pedes.read(raw)


FAULTS = [
    ("split", None, "split", "str", "None"),
    ("split", "trian", "split", "one of train, val, test", "'trian'"),
    ("captions", None, "captions", "list", "None"),
    ("captions", "A man.", "captions", "list", "'A man.'"),
    ("captions", [], "captions", "at least one", "none"),
    ("captions", ["A man.", " "], "captions[1]", "a sentence", "' '"),
    ("captions", ["A man.", 3], "captions[1]", "a sentence", "3"),
    ("captions", ["A\tman."], "captions[0]", "one line without tabs", "'A\\tman.'"),
    ("captions", ["A\nman."], "captions[0]", "one line without tabs", "'A\\nman.'"),
    ("id", None, "id", "int", "None"),
    ("id", "7", "id", "int", "'7'"),
    ("id", True, "id", "int", "True"),
]


@pytest.mark.parametrize(("key", "value", "where", "expected", "found"), FAULTS)
def test_malformed_item(raw, key, value, where, expected, found):
    data = items()
    if value is None:
        del data[4][key]
    else:
        data[4][key] = value
    write(raw, data)
    with refused(f"reid_raw.json: [4] CUHK01/2.png: {where}", expected, found):
        cuhk_pedes.read(raw)


@pytest.mark.parametrize("file", ["../a.jpg", "/etc/a.jpg", "b/../../a.jpg", "a\\b.jpg", "cam_a"])
def test_path_outside_the_pictures(raw, file):
    data = items()
    data[2]["file_path"] = file
    write(raw, data)
    with refused("[2]: file_path", "a picture below imgs/", repr(file)):
        cuhk_pedes.read(raw)


def test_person_in_two_splits(raw):
    data = items()
    data[5]["split"] = "test"
    write(raw, data)
    where, found = "[5] Market/2_c1s1.jpg: id 2", "test, but train in reid_raw.json: [3] cam_a/2_45"
    with refused(where, "one split per person", found):
        cuhk_pedes.read(raw)


@pytest.mark.parametrize("file", ["cam_a/1_45.bmp", "cam_a/1_45.jpg", "cam_a//1_45.bmp"])
def test_picture_twice(raw, file):
    data = items()
    data[7]["file_path"] = file
    write(raw, data)
    with refused(
        "[7]: file_path", "every picture once", "the name of reid_raw.json: [0]"
    ) as caught:
        cuhk_pedes.read(raw)
    assert caught.value.found.startswith("'cam_a/1_45")


@pytest.mark.parametrize("number", [0, -1, 2.0, "2", True])
def test_bad_option(number):
    with refused("cuhk_pedes: option captions_per_image", "a whole number of at least 1", number):
        Options(captions_per_image=number)


def test_counts_that_disagree_with_the_card(raw, monkeypatch):
    with refused("split train", "34054 images", 12):
        check_tables(cuhk_pedes.read(raw), cuhk_pedes.card())
    monkeypatch.setattr(cuhk_pedes, "IMAGES", {"train": 12, "val": 6, "test": 3})
    with refused("split train", "68126 captions", 24):
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
    error = refusal(fetch, "cuhk_pedes", "--source", raw)
    check(error, "Market/2_c1s1.jpg", "a raw file", "nothing (1 of 22 raw files are missing)")
    checklist = capsys.readouterr().err.splitlines()
    assert len(checklist) == 2 and all(line.startswith("[x] ") for line in checklist)


@pytest.mark.usefixtures("active")
def test_picture_that_is_damaged(raw):
    (raw / "imgs/CUHK01/3.png").write_bytes(b"not a picture")
    assert run(fetch, "--source", str(raw)) == 0
    error = refusal(prepare, "cuhk_pedes")
    check(error, "CUHK01/3.png", "a whole picture", "something empty or not a picture")

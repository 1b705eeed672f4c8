"""The reader of MSCOCO: Karpathy's partition and SCAN's features, in the real
layouts."""

import json
import pickle
import zipfile
from pathlib import Path

import layouts
import pytest
from refusals import refused

from benchmark.contracts.datasets import mscoco
from benchmark.contracts.datasets.mscoco import Options

# cocoid -> split, captions; the images of train are of train2014, all others of
# val2014.
IMAGES = {
    391895: ("test", 5),
    60623: ("train", 6),
    483108: ("restval", 7),
    184613: ("val", 5),
    318219: ("train", 5),
    554625: ("val", 6),
    9: ("test", 7),
    522418: ("restval", 5),
    7: ("test", 5),
}
SPLITS = {str(number): split for number, (split, _) in IMAGES.items()}
BARE = Options(with_pictures=False)
STEMS = {
    "train": ["60623", "483108", "318219", "522418"],
    "dev": ["184613", "554625"],
    "test": ["391895", "9"],
    "testall": ["391895", "9", "7"],
}


def folder_of(number: int) -> str:
    return "train2014" if IMAGES[number][0] == "train" else "val2014"


def name_of(number: int) -> str:
    return f"COCO_{folder_of(number)}_{number:012}.jpg"


def sentences(number: int) -> list[str]:
    return [f"Picture {number}, said {k} times. " for k in range(IMAGES[number][1])]


@pytest.fixture
def captions(tmp_path) -> Path:
    """Annotations and features, and no picture."""
    raw = tmp_path / "raw"
    images = [
        {
            "filepath": folder_of(number),
            "filename": name_of(number),
            "split": split,
            "cocoid": number,
            "captions": sentences(number),
        }
        for number, (split, _) in IMAGES.items()
    ]
    layouts.write_karpathy(raw / mscoco.KARPATHY, images)
    layouts.write_precomp(raw / mscoco.PRECOMP, STEMS)
    return raw


@pytest.fixture
def raw(captions) -> Path:
    """Everything, extracted."""
    for row, number in enumerate(IMAGES):
        layouts.draw(captions / folder_of(number) / name_of(number), row)
    return captions


def pack(raw: Path, name: str) -> None:
    with zipfile.ZipFile(raw / f"{name}.zip", "w") as archive:
        for path in sorted((raw / name).iterdir()):
            archive.write(path, f"{name}/{path.name}")
            path.unlink()
    (raw / name).rmdir()


def splits(tables) -> dict[str, str]:
    return dict(zip(tables.images["image_id"], tables.images["split"], strict=True))


@pytest.mark.parametrize(
    ("restval", "of_restval", "use"),
    [(True, "train", "training"), (False, "unused", "unused")],
)
def test_what_is_left_of_the_validation_set_is_used_for_training_or_not(
    raw, restval, of_restval, use
):
    tables = mscoco.read(raw, Options(restval=restval))
    assert splits(tables) == {
        i: of_restval if s == "restval" else s for i, s in SPLITS.items()
    }
    assert tables.images["image_id"].tolist() == list(SPLITS)  # the order of the JSON
    files = dict(zip(tables.images["image_id"], tables.images["file"], strict=True))
    assert files["391895"] == "val2014/COCO_val2014_000000391895.jpg"
    assert files["60623"] == "train2014/COCO_train2014_000000060623.jpg"
    assert layouts.in_one_note(tables, "2 images", "restval", use)
    for number, (split, _) in IMAGES.items():
        kept = sentences(number)[:5] if split in ("val", "test") else sentences(number)
        rows = tables.captions[tables.captions["image_id"] == str(number)]
        assert rows["text"].tolist() == kept
        assert rows["caption_id"].tolist() == [
            f"{number}#{k}" for k in range(len(kept))
        ]
    assert layouts.in_one_note(tables, "val: 1 of 11 captions", " 554625.")
    assert layouts.in_one_note(tables, "test: 2 of 17 captions", " 9.")


def test_keys_that_karpathy_has_not_are_told(captions):
    assert not any("not used" in note for note in mscoco.read(captions, BARE).notes)
    data = json.loads((captions / mscoco.KARPATHY).read_text())
    data["images"][0]["sentences"][1] |= {"is_rejected": True, "by": {"who": 1}}
    data["images"][1]["quality"] = 3
    (captions / mscoco.KARPATHY).write_text(json.dumps(data | {"info": {"year": 1}}))
    keys = "info.year, sentences.is_rejected, sentences.by.who, quality"
    assert layouts.in_one_note(
        mscoco.read(captions, BARE), "dataset_coco.json: ", f": {keys}."
    )


def test_counts_of_the_cards_add_up_to_the_published():
    """By hand: 616,767 captions in all, of which val and test have 25,010 each."""
    full, small = mscoco.card(), mscoco.card(Options(restval=False))
    assert full.expected_images == {"train": 82783 + 30504, "val": 5000, "test": 5000}
    assert full.expected_captions["train"] == 616767 - 2 * 25010
    assert small.expected_images["train"] == 82783
    parts = (small.expected_captions["train"], small.expected_captions["unused"])
    assert sum(parts) == full.expected_captions["train"]
    features = mscoco.card(Options(annotations="precomp"))
    assert features.expected_captions["train"] == 5 * features.expected_images["train"]
    for card in (full, small, features):
        assert card.expected_captions["test"] == card.expected_captions["val"] == 25000
        assert card.folds == 5 and card.checklist and not card.may_publish
    assert (full.split, features.split) == ("karpathy", "karpathy")
    assert small.split != "karpathy"


@pytest.mark.parametrize("packed", [("train2014",), ("train2014", "val2014")])
def test_archives_give_the_same(raw, packed):
    expected = mscoco.read(raw)
    files = expected.images["file"].tolist()
    pictures = [mscoco.pictures(raw)(file).tobytes() for file in files]
    for name in packed:
        pack(raw, name)
    tables = mscoco.read(raw)
    assert tables.images.equals(expected.images) and tables.captions.equals(
        expected.captions
    )
    open_picture = pickle.loads(pickle.dumps(mscoco.pictures(raw)))
    assert [open_picture(file).tobytes() for file in files] == pictures
    files = {path.relative_to(raw).as_posix() for path in mscoco.inventory(raw)}
    assert {f"{name}.zip" for name in packed} <= files


def test_precomputed_features_need_no_pictures(captions):
    tables = mscoco.read(captions, Options(annotations="precomp"))
    used = {i: "train" if split == "restval" else split for i, split in SPLITS.items()}
    assert splits(tables) == used
    ids = tables.images["image_id"]
    assert ids[tables.images["split"] == "test"].tolist() == STEMS["testall"]
    assert set(tables.images["file"]) == {""}
    assert layouts.in_one_note(tables, "9 of 9 images")
    with refused(found="nothing", do="place train2014/ and val2014/"):
        mscoco.pictures(captions, Options(annotations="precomp"))("")

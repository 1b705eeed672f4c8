"""The reader of Flickr30k: four partitions and two sources of features, in the real
layouts."""

import pickle
import tarfile
import zipfile
from pathlib import Path

import layouts
import pytest
from refusals import refused

from benchmark.contracts.datasets import flickr30k
from benchmark.contracts.datasets.flickr30k import Options

# imgid -> image, in Karpathy's order of names, with one image that he left out.
NAMES = {
    "0": "1001",
    "1": "1002",
    "2": "2001",
    "3": "2002",
    "4": "30",
    "5": "44",
    "6": "5",
}
LEFT_OUT = "77"
IDS = [*NAMES.values(), LEFT_OUT]
PARTITIONS = {
    "karpathy": {
        "train": ["1001", "2001", "30"],
        "val": ["1002", "44"],
        "test": ["2002", "5"],
    },
    "entities": {
        "train": ["77", "5", "44", "1001"],
        "val": ["30", "1002"],
        "test": ["2002", "2001"],
    },
    "flickr8k_based": {
        "train": ["1001", "2002", "30", "5"],
        "val": ["2001", "77"],
        "test": ["44", "1002"],
    },
    "m_rnn": {
        "train": ["30", "44", "5", "77"],
        "val": ["1001", "2001"],
        "test": ["2002", "1002"],
    },
}


def of_lists(split: str) -> dict[str, str]:
    return {
        image_id: part for part, ids in PARTITIONS[split].items() for image_id in ids
    }


def karpathy_images() -> list[dict]:
    split_of = of_lists("karpathy")
    return [
        {
            "filename": f"{i}.jpg",
            "split": split_of[i],
            "captions": layouts.five_captions(i),
        }
        | {"imgid": int(number)}
        for number, i in NAMES.items()
    ]


@pytest.fixture
def captions(tmp_path) -> Path:
    """Every annotation, and no picture."""
    raw = tmp_path / "raw"
    layouts.write_tokens(raw / flickr30k.TOKENS, sorted(IDS))
    layouts.write_karpathy(raw / flickr30k.KARPATHY, karpathy_images())
    for part, ids in PARTITIONS["entities"].items():
        (raw / f"{part}.txt").write_text("\n".join(ids))  # the last line has no end
    for part, ids in PARTITIONS["m_rnn"].items():
        layouts.write_lines(
            raw / f"m_rnn_{part}.txt", [f"{image_id}.jpg" for image_id in ids]
        )
    for part, name in flickr30k.LISTS["flickr8k_based"].items():
        ids = PARTITIONS["flickr8k_based"][part]
        layouts.write_lines(
            raw / name, [f"{image_id}_03d33305cf.jpg" for image_id in ids]
        )
    number = {image_id: number for number, image_id in NAMES.items()}
    stems = {"train": "train", "val": "dev", "test": "test"}
    parts = {
        stems[part]: [number[i] for i in ids]
        for part, ids in PARTITIONS["karpathy"].items()
    }
    layouts.write_precomp(raw / flickr30k.PRECOMP, parts)
    return raw


@pytest.fixture
def raw(captions) -> Path:
    """Everything, extracted."""
    for number, image_id in enumerate(IDS):
        layouts.draw(captions / flickr30k.IMAGE_FOLDER / f"{image_id}.jpg", number)
    return captions


def splits(tables) -> dict[str, str]:
    return dict(zip(tables.images["image_id"], tables.images["split"], strict=True))


def zipped(archive: Path, paths: list[Path], folder: str = "") -> None:
    with zipfile.ZipFile(archive, "w") as file:
        for path in paths:
            file.write(path, f"{folder}{path.name}")
            path.unlink()


@pytest.mark.parametrize("split", flickr30k.IMAGES)
def test_each_partition_is_the_same_from_folders_and_archives(raw, split):
    options = Options(split=split)
    expected = flickr30k.read(raw, options)
    assert splits(expected) == of_lists(split)
    assert (expected.images["file"] == expected.images["image_id"] + ".jpg").all()
    assert len(expected.captions) == 5 * len(of_lists(split))
    row = expected.captions[expected.captions["caption_id"] == "2001.jpg#3"].iloc[0]
    assert (row["image_id"], row["text"]) == ("2001", layouts.five_captions("2001")[3])
    pictures = {f"{i}.jpg": flickr30k.pictures(raw)(f"{i}.jpg").tobytes() for i in IDS}
    folder = raw / flickr30k.IMAGE_FOLDER
    zipped(raw / flickr30k.IMAGE_ZIP, sorted(folder.iterdir()), f"{folder.name}/")
    folder.rmdir()
    zipped(raw / "caption_datasets.zip", [raw / flickr30k.KARPATHY])
    zipped(
        raw / "Flickr8k_text.zip",
        [raw / name for name in flickr30k.LISTS["flickr8k_based"].values()],
    )
    with tarfile.open(raw / flickr30k.TOKENS_TAR, "w:gz") as archive:
        archive.add(raw / flickr30k.TOKENS, f"./{flickr30k.TOKENS}")
    (raw / flickr30k.TOKENS).unlink()
    tables = flickr30k.read(raw, options)
    assert tables.images.equals(expected.images) and tables.captions.equals(
        expected.captions
    )
    open_picture = pickle.loads(pickle.dumps(flickr30k.pictures(raw, options)))
    assert {name: open_picture(name).tobytes() for name in pictures} == pictures
    assert all(path.is_file() for path in flickr30k.inventory(raw, options))


def table_of(captions: Path, columns: tuple[str, ...]) -> None:
    """Kaggle's table in the place of the captions: padded, never quoted, and one line
    torn."""
    rows = [
        {"image_name": f"{i}.jpg", "comment_number": str(k), "comment": text}
        for i in IDS
        for k, text in enumerate(layouts.five_captions(i))
    ]
    rows[7]["comment"] = '" Fresh fish " says a sign .'
    rows[9]["comment"] = '"Fish"'
    lines = [columns, *([row[column] for column in columns] for row in rows)]
    text = "".join("| ".join(line) + "\n" for line in lines)
    torn = "| ".join((rows[14]["image_name"], "4", rows[14]["comment"]))
    text = text.replace(torn, torn.replace("| 4| ", "| 4   "))
    (captions / flickr30k.TABLE).write_text(text)
    (captions / flickr30k.TOKENS).unlink()


@pytest.mark.parametrize("split", ["entities", "flickr8k_based", "m_rnn"])
def test_the_table_that_kaggle_has(captions, split):
    options = Options(split=split, with_pictures=False)
    expected = flickr30k.read(captions, options)
    table_of(captions, ("image_name", "comment_number", "comment"))
    tables = flickr30k.read(captions, options)
    assert splits(tables) == splits(expected)
    texts = tables.captions.set_index("caption_id")["text"]
    first, other = IDS[1], IDS[2]
    assert texts[f"{first}.jpg#2"] == '" Fresh fish " says a sign .'
    assert texts[f"{first}.jpg#4"] == '"Fish"'
    assert texts[f"{other}.jpg#4"] == layouts.five_captions(other)[4]
    kept = expected.captions.set_index("caption_id")["text"]
    same = texts.drop([f"{first}.jpg#2", f"{first}.jpg#4"])
    assert same.sort_index().to_dict() == kept[same.index].sort_index().to_dict()
    assert layouts.in_one_note(tables, "1 lines of results.csv")
    assert captions / flickr30k.TABLE in flickr30k.inventory(captions, options)


def test_the_columns_of_the_table_go_by_their_names(captions):
    options = Options(split="entities", with_pictures=False)
    table_of(captions, ("image_name", "comment_number", "comment"))
    expected = flickr30k.read(captions, options)
    (captions / flickr30k.TOKENS).write_text("")
    table_of(captions, ("comment", "image_name", "comment_number"))
    assert flickr30k.read(captions, options).captions.equals(expected.captions)
    table = captions / flickr30k.TABLE
    for old, new, where in (
        ("comment_number", "number", "results.csv:1"),
        ("| 1\n", "| 0\n", "results.csv:3"),
        ("| 1\n", "|\n", "results.csv:3"),
    ):
        text = table.read_text()
        table.write_text(text.replace(old, new, 1))
        with refused(where, do="unchanged copy"):
            flickr30k.read(captions, options)
        table.write_text(text)


def test_precomputed_features_need_no_pictures(captions):
    tables = flickr30k.read(captions, Options(annotations="precomp"))
    expected = {
        number: of_lists("karpathy")[image_id] for number, image_id in NAMES.items()
    }
    assert splits(tables) == expected
    assert set(tables.images["file"]) == {""}
    assert layouts.in_one_note(tables, "7 of 7 images")
    assert len(flickr30k.inventory(captions, Options(annotations="precomp"))) == 9
    with refused(found="nothing", do="flickr30k-images.zip") as caught:
        flickr30k.pictures(captions, Options(annotations="precomp"))("")
    assert flickr30k.KARPATHY in caught.value.do


@pytest.mark.parametrize("split", ["test", "no split"])
def test_features_of_another_partition_are_refused(raw, split):
    images = karpathy_images()
    images[4]["split"] = split
    kept = [image for image in images if image["split"] != "no split"]
    layouts.write_karpathy(raw / flickr30k.KARPATHY, kept)
    with refused(
        "id '4'",
        found=f"train, but {split} in {flickr30k.KARPATHY}",
        do="same partition",
    ):
        flickr30k.read(raw, Options(annotations="precomp"))


@pytest.mark.parametrize(
    ("line", "fault"),
    [("123", "unknown image"), ("", "unknown image"), ("x y", "unknown image")]
    + [("2001", "already in test"), ("1001", "already in train")],
)
def test_a_bad_line_of_a_list_is_refused(raw, line, fault):
    path = raw / "test.txt"
    path.write_text(f"{path.read_text()}\n{line}\n")
    with refused("test.txt:3", "another image", f"{line!r}: {fault}"):
        flickr30k.read(raw, Options(split="entities"))

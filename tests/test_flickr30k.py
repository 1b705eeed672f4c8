"""The reader of Flickr30k: four partitions and two sources of features, in the real layouts."""

import json
import pickle
import tarfile
import zipfile
from pathlib import Path

import pytest
from layouts import write_precomp
from PIL import Image
from refusals import refused

from benchmark.contracts.datasets import flickr30k
from benchmark.contracts.datasets.flickr30k import Options

# imgid -> image, in Karpathy's order of names, with one image that he left out.
NAMES = {"0": "1001", "1": "1002", "2": "2001", "3": "2002", "4": "30", "5": "44", "6": "5"}
LEFT_OUT = "77"
IDS = [*NAMES.values(), LEFT_OUT]
PARTITIONS = {
    "karpathy": {"train": ["1001", "2001", "30"], "val": ["1002", "44"], "test": ["2002", "5"]},
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
    "m_rnn": {"train": ["30", "44", "5", "77"], "val": ["1001", "2001"], "test": ["2002", "1002"]},
}


def sentences(image_id: str) -> list[str]:
    return [f"A picture of {image_id} , said {k} times ." for k in range(5)]


def of_lists(split: str) -> dict[str, str]:
    return {image_id: part for part, ids in PARTITIONS[split].items() for image_id in ids}


def write_lists(raw: Path) -> None:
    for part, ids in PARTITIONS["entities"].items():
        (raw / f"{part}.txt").write_text("\n".join(ids))  # the last line has no end
    for part, ids in PARTITIONS["m_rnn"].items():
        (raw / f"m_rnn_{part}.txt").write_text("".join(f"{image_id}.jpg\n" for image_id in ids))
    for part, name in flickr30k.LISTS["flickr8k_based"].items():
        ids = PARTITIONS["flickr8k_based"][part]
        (raw / name).write_text("".join(f"{image_id}_03d33305cf.jpg\n" for image_id in ids))


def karpathy_images() -> list[dict]:
    split_of = of_lists("karpathy")
    return [
        {
            "sentids": [5 * int(number) + k for k in range(5)],
            "imgid": int(number),
            "sentences": [
                {"tokens": text.split(), "raw": text, "imgid": int(number), "sentid": 0}
                for text in sentences(image_id)
            ],
            "split": split_of[image_id],
            "filename": f"{image_id}.jpg",
        }
        for number, image_id in NAMES.items()
    ]


def write_karpathy(raw: Path, images: list[dict] | None = None) -> None:
    data = {"images": karpathy_images() if images is None else images, "dataset": "flickr30k"}
    (raw / flickr30k.KARPATHY).write_text(json.dumps(data))


@pytest.fixture
def captions(tmp_path) -> Path:
    """Every annotation, and no picture."""
    raw = tmp_path / "raw"
    raw.mkdir()
    lines = [f"{i}.jpg#{k}\t{text}" for i in sorted(IDS) for k, text in enumerate(sentences(i))]
    (raw / flickr30k.TOKENS).write_text("\n".join(lines) + "\n")
    write_lists(raw)
    write_karpathy(raw)
    number = {image_id: number for number, image_id in NAMES.items()}
    stems = {"train": "train", "val": "dev", "test": "test"}
    parts = {stems[part]: [number[i] for i in ids] for part, ids in PARTITIONS["karpathy"].items()}
    write_precomp(raw / flickr30k.PRECOMP, parts)
    return raw


@pytest.fixture
def raw(captions) -> Path:
    """Everything, extracted."""
    pictures = captions / flickr30k.IMAGE_FOLDER
    pictures.mkdir()
    for number, image_id in enumerate(IDS):
        Image.new("RGB", (16, 12), (30 * number, 9, 0)).save(pictures / f"{image_id}.jpg")
    return captions


def pack_pictures(raw: Path) -> None:
    folder = raw / flickr30k.IMAGE_FOLDER
    with zipfile.ZipFile(raw / flickr30k.IMAGE_ZIP, "w") as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, f"{folder.name}/{path.name}")
            path.unlink()
    folder.rmdir()


def splits(tables) -> dict[str, str]:
    return dict(zip(tables.images["image_id"], tables.images["split"], strict=True))


@pytest.mark.parametrize("split", flickr30k.IMAGES)
def test_partitions(raw, split):
    tables = flickr30k.read(raw, Options(split=split))
    assert splits(tables) == of_lists(split)
    files = dict(zip(tables.images["image_id"], tables.images["file"], strict=True))
    assert files == {image_id: f"{image_id}.jpg" for image_id in of_lists(split)}
    assert len(tables.captions) == 5 * len(of_lists(split))
    row = tables.captions[tables.captions["caption_id"] == "2001.jpg#3"].iloc[0]
    assert (row["image_id"], row["text"]) == ("2001", sentences("2001")[3])


@pytest.mark.parametrize("split", flickr30k.IMAGES)
def test_archives_give_the_same(raw, split):
    expected = flickr30k.read(raw, Options(split=split))
    pictures = {f"{i}.jpg": flickr30k.pictures(raw)(f"{i}.jpg").tobytes() for i in IDS}
    pack_pictures(raw)
    with zipfile.ZipFile(raw / "caption_datasets.zip", "w") as archive:
        archive.write(raw / flickr30k.KARPATHY, flickr30k.KARPATHY)
    (raw / flickr30k.KARPATHY).unlink()
    with tarfile.open(raw / flickr30k.TOKENS_TAR, "w:gz") as archive:
        archive.add(raw / flickr30k.TOKENS, f"./{flickr30k.TOKENS}")
    (raw / flickr30k.TOKENS).unlink()
    with zipfile.ZipFile(raw / "Flickr8k_text.zip", "w") as archive:
        for name in flickr30k.LISTS["flickr8k_based"].values():
            archive.write(raw / name, name)
            (raw / name).unlink()
    tables = flickr30k.read(raw, Options(split=split))
    assert tables.images.equals(expected.images) and tables.captions.equals(expected.captions)
    open_picture = pickle.loads(pickle.dumps(flickr30k.pictures(raw, Options(split=split))))
    assert {name: open_picture(name).tobytes() for name in pictures} == pictures
    assert all(path.is_file() for path in flickr30k.inventory(raw, Options(split=split)))


def test_features_without_pictures(captions):
    tables = flickr30k.read(captions, Options(annotations="precomp"))
    expected = {number: of_lists("karpathy")[image_id] for number, image_id in NAMES.items()}
    assert splits(tables) == expected
    assert set(tables.images["file"]) == {""}
    assert "7 of 7 images have features but no picture." in tables.notes
    assert len(flickr30k.inventory(captions, Options(annotations="precomp"))) == 9
    do = "place flickr30k-images/ or flickr30k-images.zip in the raw folder, and dataset_flickr30k"
    with refused(expected="a picture", found="nothing", do=do):
        flickr30k.pictures(captions, Options(annotations="precomp"))("")


@pytest.mark.parametrize("said", ["test", "no split"])
def test_features_of_another_partition(raw, said):
    images = karpathy_images()
    images[4]["split"] = said
    write_karpathy(raw, [image for image in images if image["split"] != "no split"])
    with refused("id '4'", found=f"train, but {said} in dataset_flickr30k", do="same partition"):
        flickr30k.read(raw, Options(annotations="precomp"))


@pytest.mark.parametrize(
    ("line", "fault"),
    [("123", "unknown image"), ("", "unknown image"), ("x y", "unknown image")]
    + [("2001", "already in test"), ("1001", "already in train")],
)
def test_bad_list(raw, line, fault):
    path = raw / "test.txt"
    path.write_text(f"{path.read_text()}\n{line}\n")
    with refused("test.txt:3", "the id of another image", f"{line!r}: {fault}"):
        flickr30k.read(raw, Options(split="entities"))


# The stages ----------------------------------------------------------------------------------

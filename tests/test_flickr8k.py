"""The reader of Flickr8k, on a dozen drawn pictures in the exact layouts of the
release."""

import pickle
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import layouts
import pytest
from PIL import Image

from benchmark.contracts.datasets import flickr8k
from benchmark.contracts.datasets.flickr8k import Options

SPLIT_OF = {
    f"{number}_{'ab'[number % 2]}.jpg": split
    for split, numbers in (
        ("train", (30, 10, 20, 70, 60)),
        ("val", (41, 40)),
        ("test", (52, 51)),
    )
    for number in numbers
}
UNUSED = ["11_b.jpg", "90_a.jpg", "99_b.jpg"]
PICTURES = [*SPLIT_OF, *UNUSED]


def sentences(name: str) -> list[str]:
    return [f"A picture called {name} , said {k} times ." for k in range(5)]


def draw(number: int) -> Image.Image:
    return Image.new("RGB", (16, 12), (20 * number, 255 - 20 * number, 0))


def token_lines() -> list[str]:
    captioned = sorted([*PICTURES, flickr8k.NO_PICTURE])
    return [
        f"{name}#{k}\t{text}"
        for name in captioned
        for k, text in enumerate(sentences(name))
    ]


@pytest.fixture
def extracted(tmp_path) -> Path:
    """The release, extracted, with the other files that its archives hold."""
    raw = tmp_path / "extracted"
    pictures = raw / "Flicker8k_Dataset"
    pictures.mkdir(parents=True)
    for number, name in enumerate(PICTURES):
        draw(number).save(pictures / name)
    (pictures / "._10_a.jpg").write_bytes(b"resource fork")
    (raw / flickr8k.TOKENS).write_text("\n".join(token_lines()) + "\n")
    (raw / "readme.txt").write_text("Read me.")
    for split, name in flickr8k.LISTS.items():
        names = [file for file, its in SPLIT_OF.items() if its == split]
        (raw / name).write_text("\n".join(names) + "\n")
    return raw


def pack(archive: Path, root: Path, paths: list[Path]) -> None:
    with zipfile.ZipFile(archive, "w") as file:
        for path in paths:
            file.write(path, path.relative_to(root).as_posix())
            file.writestr(f"__MACOSX/{path.relative_to(root).as_posix()}", b"fork")


@pytest.fixture
def zipped(tmp_path, extracted) -> Path:
    raw = tmp_path / "zipped"
    raw.mkdir()
    pictures = sorted((extracted / "Flicker8k_Dataset").iterdir())
    pack(raw / flickr8k.IMAGE_ZIP, extracted, pictures)
    pack(raw / flickr8k.TEXT_ZIP, extracted, sorted(extracted.glob("*.txt")))
    return raw


def place_karpathy(raw: Path, packed: bool) -> None:
    images = [
        {"filename": name, "split": split, "captions": sentences(name)}
        for name, split in sorted(SPLIT_OF.items())
    ]
    layouts.write_karpathy(raw / flickr8k.KARPATHY, images)
    if packed:
        with zipfile.ZipFile(raw / f"{flickr8k.KARPATHY}.zip", "w") as file:
            file.write(raw / flickr8k.KARPATHY, flickr8k.KARPATHY)
        (raw / flickr8k.KARPATHY).unlink()


def splits(tables) -> dict[str, str]:
    return dict(zip(tables.images["file"], tables.images["split"], strict=True))


def test_the_official_release_is_read_in_the_order_of_its_lists(zipped, extracted):
    tables = flickr8k.read(zipped)
    assert splits(tables) == SPLIT_OF | dict.fromkeys(UNUSED, "unused")
    assert tables.images["file"].tolist() == PICTURES  # the order of the lists
    assert tables.images["image_id"].tolist() == [
        name.removesuffix(".jpg") for name in PICTURES
    ]
    assert len(tables.captions) == 60
    row = tables.captions[tables.captions["caption_id"] == "20_a.jpg#3"].iloc[0]
    assert (row["image_id"], row["text"]) == ("20_a", sentences("20_a.jpg")[3])
    notes = " ".join(tables.notes)
    assert "3 pictures are in no split" in notes
    assert f"5 captions of {flickr8k.NO_PICTURE} are left out" in notes
    assert flickr8k.TOKENS in notes
    of_folders = flickr8k.read(extracted)
    assert of_folders.images.equals(tables.images)
    assert (
        of_folders.captions.equals(tables.captions) and of_folders.notes == tables.notes
    )


@pytest.mark.parametrize("packed", [False, True])
def test_karpathy_has_the_same_splits(zipped, packed):
    official = flickr8k.read(zipped)
    place_karpathy(zipped, packed)
    tables = flickr8k.read(zipped, Options(annotations="karpathy"))
    assert splits(tables) == splits(official)
    assert flickr8k.KARPATHY in tables.notes[0]
    both = tables.captions.merge(
        official.captions, on=["caption_id", "image_id", "text"]
    )
    assert len(both) == len(tables.captions) == 45


def test_pictures_in_threads_and_processes(zipped):
    open_picture = flickr8k.pictures(zipped)
    expected = [open_picture(name).tobytes() for name in PICTURES] * 4
    with ThreadPoolExecutor(8) as pool:
        contents = [
            picture.tobytes() for picture in pool.map(open_picture, PICTURES * 4)
        ]
    assert contents == expected
    copy = pickle.loads(pickle.dumps(open_picture))
    assert copy("10_a.jpg").tobytes() == open_picture("10_a.jpg").tobytes()

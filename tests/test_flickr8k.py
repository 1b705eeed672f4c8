"""The reader of Flickr8k, on a dozen drawn pictures in the exact layouts of the release."""

import dataclasses
import json
import pickle
import zipfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from PIL import Image
from refusals import check, refusal, refused

from benchmark.core.command_line import run_stage
from benchmark.data import prepared_tables
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare
from benchmark.season.parameter_files import write_params
from benchmark.season.parameters import DatasetSettings
from datasets import flickr8k
from datasets.flickr8k import Options
from seasons import params_of

SPLIT_OF = {
    f"{number}_{'ab'[number % 2]}.jpg": split
    for split, numbers in (("train", (30, 10, 20, 70, 60)), ("val", (41, 40)), ("test", (52, 51)))
    for number in numbers
}
UNUSED = ["11_b.jpg", "90_a.jpg", "99_b.jpg"]
PICTURES = [*SPLIT_OF, *UNUSED]
CARD = flickr8k.CARD
COUNTS = {"train": 5, "val": 2, "test": 2, "unused": 3}


def sentences(name: str) -> list[str]:
    return [f"A picture called {name} , said {k} times ." for k in range(5)]


def draw(number: int) -> Image.Image:
    return Image.new("RGB", (16, 12), (20 * number, 255 - 20 * number, 0))


def token_lines() -> list[str]:
    captioned = sorted([*PICTURES, flickr8k.NO_PICTURE])
    return [f"{name}#{k}\t{text}" for name in captioned for k, text in enumerate(sentences(name))]


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
    """The release as it is downloaded."""
    raw = tmp_path / "zipped"
    raw.mkdir()
    pictures = sorted((extracted / "Flicker8k_Dataset").iterdir())
    pack(raw / flickr8k.IMAGE_ZIP, extracted, pictures)
    pack(raw / flickr8k.TEXT_ZIP, extracted, sorted(extracted.glob("*.txt")))
    return raw


def karpathy_json() -> str:
    images = [
        {
            "filename": name,
            "split": split,
            "imgid": number,
            "sentences": [{"raw": text, "tokens": text.split()} for text in sentences(name)],
        }
        for number, (name, split) in enumerate(sorted(SPLIT_OF.items()))
    ]
    return json.dumps({"dataset": "flickr8k", "images": images})


def place_karpathy(raw: Path, packed: bool = False) -> None:
    if packed:
        with zipfile.ZipFile(raw / f"{flickr8k.KARPATHY}.zip", "w") as file:
            file.writestr(flickr8k.KARPATHY, karpathy_json())
    else:
        (raw / flickr8k.KARPATHY).write_text(karpathy_json())


def splits(tables) -> dict[str, str]:
    return dict(zip(tables.images["file"], tables.images["split"], strict=True))


def test_official(zipped):
    tables = flickr8k.read(zipped)
    assert splits(tables) == SPLIT_OF | dict.fromkeys(UNUSED, "unused")
    assert tables.images["file"].tolist() == PICTURES  # the order of the lists
    assert tables.images["image_id"].tolist() == [name.removesuffix(".jpg") for name in PICTURES]
    assert len(tables.captions) == 60
    row = tables.captions[tables.captions["caption_id"] == "20_a.jpg#3"].iloc[0]
    assert (row["image_id"], row["text"]) == ("20_a", sentences("20_a.jpg")[3])


def test_irregularities_are_told(zipped):
    notes = " ".join(flickr8k.read(zipped).notes)
    assert "3 pictures are in no split" in notes
    assert f"5 captions of {flickr8k.NO_PICTURE} are left out" in notes
    assert flickr8k.TOKENS in notes


def test_extracted_equals_zipped(zipped, extracted):
    of_archives, of_folders = flickr8k.read(zipped), flickr8k.read(extracted)
    assert of_archives.images.equals(of_folders.images)
    assert of_archives.captions.equals(of_folders.captions)
    assert of_archives.notes == of_folders.notes


def test_folder_called_images(extracted):
    expected = flickr8k.read(extracted)
    (extracted / "Flicker8k_Dataset").rename(extracted / "Images")
    assert flickr8k.read(extracted).images.equals(expected.images)
    assert flickr8k.pictures(extracted)("10_a.jpg").size == (16, 12)


@pytest.mark.parametrize("packed", [False, True])
def test_karpathy_has_the_same_splits(zipped, packed):
    official = flickr8k.read(zipped)
    place_karpathy(zipped, packed)
    tables = flickr8k.read(zipped, Options(annotations="karpathy"))
    assert splits(tables) == splits(official)
    assert flickr8k.KARPATHY in tables.notes[0]
    both = tables.captions.merge(official.captions, on=["caption_id", "image_id", "text"])
    assert len(both) == len(tables.captions) == 45


def test_official_is_preferred_and_karpathy_is_the_fallback(zipped):
    place_karpathy(zipped)
    assert flickr8k.TOKENS in flickr8k.read(zipped).notes[0]
    (zipped / flickr8k.TEXT_ZIP).unlink()
    assert flickr8k.KARPATHY in flickr8k.read(zipped).notes[0]


def names(paths: list[Path], raw: Path) -> list[str]:
    return sorted(path.relative_to(raw).as_posix() for path in paths)


def test_inventory(zipped, extracted):
    assert names(flickr8k.inventory(zipped), zipped) == [flickr8k.IMAGE_ZIP, flickr8k.TEXT_ZIP]
    texts = [flickr8k.TOKENS, *flickr8k.LISTS.values()]
    pictures = [f"Flicker8k_Dataset/{name}" for name in PICTURES]
    assert names(flickr8k.inventory(extracted), extracted) == sorted(texts + pictures)
    place_karpathy(zipped)
    chosen = flickr8k.inventory(zipped, Options(annotations="karpathy"))
    assert names(chosen, zipped) == [flickr8k.IMAGE_ZIP, flickr8k.KARPATHY]


def test_pictures_are_the_same_from_both_layouts(zipped, extracted):
    packed, loose = flickr8k.pictures(zipped), flickr8k.pictures(extracted)
    for name in PICTURES:
        assert packed(name).mode == "RGB"
        assert packed(name).tobytes() == loose(name).tobytes()


def test_pictures_are_rgb(extracted):
    path = extracted / "Flicker8k_Dataset/10_a.jpg"
    Image.open(path).convert("L").save(path)
    assert flickr8k.pictures(extracted)("10_a.jpg").mode == "RGB"


def test_picture_that_the_archive_does_not_have(zipped):
    with refused(zipped / flickr8k.IMAGE_ZIP, "a picture Flicker8k_Dataset/no.jpg", "nothing"):
        flickr8k.pictures(zipped)("no.jpg")


def test_pictures_in_threads_and_processes(zipped):
    open_picture = flickr8k.pictures(zipped)
    expected = [open_picture(name).tobytes() for name in PICTURES] * 4
    with ThreadPoolExecutor(8) as pool:
        contents = [picture.tobytes() for picture in pool.map(open_picture, PICTURES * 4)]
    assert contents == expected
    copy = pickle.loads(pickle.dumps(open_picture))
    assert copy("10_a.jpg").tobytes() == open_picture("10_a.jpg").tobytes()


def test_pictures_in_spawned_processes(zipped):
    open_picture = flickr8k.pictures(zipped)
    open_picture("10_a.jpg")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        opened = list(pool.map(open_picture, PICTURES))
    assert [picture.size for picture in opened] == [(16, 12)] * len(PICTURES)


def test_each_process_has_its_own_handle(zipped, monkeypatch):
    open_picture = flickr8k.pictures(zipped)
    open_picture("10_a.jpg")
    monkeypatch.setattr("os.getpid", lambda: -1)  # as in a forked child
    open_picture("10_a.jpg")
    assert len(set(map(id, open_picture.handles.values()))) == 2


@pytest.mark.parametrize("name", ["../evil.jpg", "/etc/evil.jpg", "a/../../b.jpg", "..\\b.jpg"])
@pytest.mark.parametrize("archive", [flickr8k.IMAGE_ZIP, flickr8k.TEXT_ZIP])
def test_archive_with_a_member_outside_is_refused(zipped, archive, name):
    with zipfile.ZipFile(zipped / archive, "a") as file:
        file.writestr(name, b"x")
    with refused(zipped / archive, "members inside it", f"{name!r}, outside"):
        flickr8k.read(zipped)


@pytest.mark.parametrize("archive", [flickr8k.IMAGE_ZIP, flickr8k.TEXT_ZIP])
def test_archive_that_is_not_whole(zipped, archive):
    content = (zipped / archive).read_bytes()
    (zipped / archive).write_bytes(content[:-30])
    with refused(zipped / archive, "a whole zip archive", "damage"):
        flickr8k.read(zipped)


BAD_LINES = [
    "10_a.jpg#0 no tab",
    "10_a.jpg\tno number",
    "10_a.jpg#x\tno digit",
    "#0\tno name",
    "10_a.jpg#0\t",
    "10_a.jpg#0\t  \t ",
    "",
]


@pytest.mark.parametrize("line", BAD_LINES)
def test_bad_caption_line(extracted, line):
    lines = token_lines()
    lines[7] = line
    (extracted / flickr8k.TOKENS).write_text("\n".join(lines))
    with refused("Flickr8k.token.txt:8", "name#k, a tab and a caption", repr(line)):
        flickr8k.read(extracted)


def test_caption_with_rare_characters_is_one_line(extracted):
    lines = token_lines()
    lines[0] = "10_a.jpg#0\tA line\u2028separator \x85 and\ta tab "
    (extracted / flickr8k.TOKENS).write_bytes("\r\n".join([*lines, ""]).encode())
    captions = flickr8k.read(extracted).captions
    assert captions["text"].iloc[0] == "A line\u2028separator \x85 and\ta tab "
    assert len(captions) == 60


@pytest.mark.parametrize(
    ("line", "fault"), [("52_a.jpg", ", already in test"), ("41_b", ""), ("", "")]
)
def test_bad_split_list(extracted, line, fault):
    path = extracted / flickr8k.LISTS["test"]
    path.write_text(f"{path.read_text()}{line}\n")
    with refused("Flickr_8k.testImages.txt:3", "the .jpg name of another", f"{line!r}{fault}"):
        flickr8k.read(extracted)


def test_image_in_two_lists(extracted):
    path = extracted / flickr8k.LISTS["test"]
    path.write_text(f"{path.read_text()}30_a.jpg\n")
    with refused("Flickr_8k.testImages.txt:3", found="'30_a.jpg', already in train"):
        flickr8k.read(extracted)


def test_text_that_is_not_utf8(extracted):
    (extracted / flickr8k.TOKENS).write_bytes(b"10_a.jpg#0\t\xff\xfe\n")
    with refused("Flickr8k.token.txt", "UTF-8 text", "damage"):
        flickr8k.read(extracted)


@pytest.mark.parametrize("name", [flickr8k.LISTS["val"], flickr8k.TOKENS])
def test_missing_text(extracted, name):
    (extracted / name).unlink()
    where, expected = (name, "a text file") if name != flickr8k.TOKENS else (extracted, name)
    with refused(where, expected, "n"):
        flickr8k.read(extracted)


def test_missing_member_of_the_text_archive(zipped, extracted):
    pack(zipped / flickr8k.TEXT_ZIP, extracted, [extracted / flickr8k.TOKENS])
    with refused(flickr8k.TEXT_ZIP, "Flickr_8k.trainImages.txt", "nothing of this name"):
        flickr8k.read(zipped)


def test_nothing_there(tmp_path, zipped):
    with refused("nowhere", "Flickr8k_Dataset.zip", "no pictures"):
        flickr8k.read(tmp_path / "nowhere")
    with refused(zipped, "dataset_flickr8k.json", "no annotations"):
        flickr8k.read(zipped, Options(annotations="karpathy"))
    with refused("option annotations", "one of official, karpathy", "'karpaty'"):
        Options(annotations="karpaty")
    (zipped / flickr8k.TEXT_ZIP).unlink()
    with refused(zipped, "Flickr8k_text.zip", "no annotations"):
        flickr8k.read(zipped)


@pytest.mark.parametrize(
    ("text", "where", "expected", "found"),
    [
        ("{", "", "JSON", "something else"),
        ("[]", ": images", "list", "None"),
        ('{"images": [1]}', ": images[0]: filename", "str", "None"),
        ('{"images": [{"filename": "a.jpg"}]}', ": images[0]: sentences", "list", "None"),
        (
            '{"images": [{"filename": "a.jpg", "split": "val", "sentences": [{"raw": 1}]}]}',
            *(": images[0].sentences[0]: raw", "str", "1"),
        ),
    ],
)
def test_malformed_karpathy(zipped, text, where, expected, found):
    (zipped / flickr8k.KARPATHY).write_text(text)
    with refused(f"dataset_flickr8k.json{where}", expected, found):
        flickr8k.read(zipped, Options(annotations="karpathy"))


def test_image_twice_in_karpathy(zipped):
    data = json.loads(karpathy_json())
    data["images"].append(data["images"][0])
    (zipped / flickr8k.KARPATHY).write_text(json.dumps(data))
    with refused("images[9]: filename", "every file once", "'10_a.jpg' a second time"):
        flickr8k.read(zipped, Options(annotations="karpathy"))


@pytest.fixture
def active(tmp_path, monkeypatch) -> None:
    """Stages run in a fresh folder, with a card that expects the small numbers."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    card = dataclasses.replace(flickr8k.CARD, expected_images=COUNTS)
    monkeypatch.setattr(flickr8k, "CARD", card)
    write_params(params_of(datasets={"flickr8k": DatasetSettings(reader="flickr8k")}))


def run(stage, *words: str) -> int:
    return run_stage("", stage.configure, stage.main, ["flickr8k", *words])


@pytest.mark.usefixtures("active")
def test_fetch_and_prepare(zipped, extracted):
    tables = []
    for raw in (zipped, extracted):
        assert run(fetch, "--source", str(raw)) == 0
        assert run(prepare) == 0
        data = prepared_tables.read("flickr8k")
        assert {split: count["images"] for split, count in data.card["counts"].items()} == COUNTS
        assert data.card["may_publish"] is False
        tables.append(data)
    assert tables[0].images.equals(tables[1].images)
    assert tables[0].captions.equals(tables[1].captions)


@pytest.mark.usefixtures("active")
def test_picture_that_is_listed_but_not_there(zipped, extracted):
    (extracted / "Flicker8k_Dataset/41_b.jpg").unlink()
    pictures = sorted((extracted / "Flicker8k_Dataset").iterdir())
    pack(zipped / flickr8k.IMAGE_ZIP, extracted, pictures)
    for raw in (zipped, extracted):
        assert run(fetch, "--source", str(raw)) == 0
        check(refusal(prepare, "flickr8k"), "41_b.jpg", found="(1 such in all)")


@pytest.mark.usefixtures("active")
def test_another_captioned_image_without_a_picture_is_refused(extracted):
    with (extracted / flickr8k.TOKENS).open("a") as file:
        file.write("other.jpg#0\tNobody has seen it .\n")
    run(fetch, "--source", str(extracted))
    error = refusal(prepare, "flickr8k")
    check(error, "caption_id 'other.jpg#0': image_id", "an image of the table", "'other'")


@pytest.mark.usefixtures("active")
def test_damaged_picture_in_the_archive(zipped):
    content = (zipped / flickr8k.IMAGE_ZIP).read_bytes()
    at = content.index(b"\xff\xd8") + 300  # inside the first picture, which is stored as it is
    (zipped / flickr8k.IMAGE_ZIP).write_bytes(content[:at] + b"\1\2\3" + content[at + 3 :])
    run(fetch, "--source", str(zipped))
    error = refusal(prepare, "flickr8k")
    check(error, "10_a.jpg", "a whole picture", "cannot be decoded (Bad CRC")


@pytest.mark.usefixtures("active")
def test_incomplete_copy_is_refused_by_the_counts_of_the_card(zipped, monkeypatch):
    assert CARD.expected_images == {"train": 6000, "val": 1000, "test": 1000, "unused": 91}
    monkeypatch.setattr(flickr8k, "CARD", CARD)
    run(fetch, "--source", str(zipped))
    check(refusal(prepare, "flickr8k"), "split train", "6000 images", "5")

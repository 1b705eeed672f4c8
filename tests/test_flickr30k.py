"""The reader of Flickr30k: four partitions and two sources of features, in the real layouts."""

import json
import pickle
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml
from layouts import write_precomp
from PIL import Image
from refusals import check, refusal, refused

from benchmark.core.command_line import run_stage
from benchmark.data import prepared_tables
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare
from benchmark.season.parameter_files import write_params
from benchmark.season.parameters import DatasetSettings
from datasets import flickr30k
from datasets.flickr30k import Options
from seasons import params_of

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
PAPERS = Path(__file__).parent.parent / "benchmark/papers"


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


def partition_of(paper: Path) -> str:
    return yaml.safe_load(paper.read_text())["paper"]["splits"]["flickr30k"]


@pytest.mark.parametrize("split", flickr30k.IMAGES)
def test_the_card_names_the_partition_as_the_papers_do(split):
    card = flickr30k.card(Options(split=split))
    assert card.split == split
    assert card.split in {partition_of(path) for path in PAPERS.glob("*.yaml")}
    total = {"karpathy": 31783 - 769}.get(split, 31783)
    assert sum(card.expected_images.values()) == total
    assert sum(card.expected_captions.values()) == 5 * total
    assert card.form and card.checklist and not card.may_publish


def test_what_is_downloaded_is_what_the_options_need():
    def names(**options) -> list[str]:
        return [remote.name for remote in flickr30k.card(Options(**options)).remote]

    assert names() == ["caption_datasets.zip"]
    assert names(annotations="precomp") == []
    assert names(split="entities") == ["flickr30k.tar.gz", "train.txt", "val.txt", "test.txt"]
    assert names(split="flickr8k_based") == ["flickr30k.tar.gz", "Flickr8k_text.zip"]
    assert names(split="m_rnn") == ["flickr30k.tar.gz"]


def test_images_come_in_the_order_of_the_lists(raw):
    ids = flickr30k.read(raw, Options(split="entities")).images["image_id"].tolist()
    assert ids == [i for part in PARTITIONS["entities"].values() for i in part]


def test_an_image_in_no_partition_is_told(raw):
    assert "1 pictures are in no split; they are left out." in flickr30k.read(raw).notes
    path = raw / "train.txt"
    path.write_text(path.read_text().replace("77\n", ""))
    tables = flickr30k.read(raw, Options(split="entities"))
    assert splits(tables)["77"] == "unused"
    assert "1 captioned images are in no list and stay unused." in tables.notes


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


def inventory(raw: Path, **options) -> set[str]:
    return {
        path.relative_to(raw).as_posix() for path in flickr30k.inventory(raw, Options(**options))
    }


def test_inventory(raw):
    pictures = {f"flickr30k-images/{image_id}.jpg" for image_id in IDS}
    lists = {"train.txt", "val.txt", "test.txt"}
    precomp = {
        f"f30k_precomp/{stem}_{end}"
        for stem in ("train", "dev", "test")
        for end in ("caps.txt", "ids.txt", "ims.npy")
    }
    assert inventory(raw) == pictures | {flickr30k.KARPATHY}
    assert inventory(raw, split="entities") == pictures | lists | {flickr30k.TOKENS}
    assert inventory(raw, with_pictures=False) == {flickr30k.KARPATHY}
    assert inventory(raw, annotations="precomp") == pictures | precomp | {flickr30k.KARPATHY}
    assert inventory(raw, annotations="precomp", with_pictures=False) == precomp


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


def test_features_with_pictures_and_their_names(raw):
    (raw / flickr30k.IMAGE_FOLDER / "30.jpg").unlink()
    tables = flickr30k.read(raw, Options(annotations="precomp"))
    files = dict(zip(tables.images["image_id"], tables.images["file"], strict=True))
    expected = {number: f"{image_id}.jpg" for number, image_id in NAMES.items()}
    assert files == expected | {"4": ""}
    assert flickr30k.pictures(raw, Options(annotations="precomp"))("1001.jpg").size == (16, 12)


def test_features_with_pictures_but_without_their_names(raw):
    (raw / flickr30k.KARPATHY).unlink()
    assert set(flickr30k.read(raw, Options(annotations="precomp")).images["file"]) == {""}


@pytest.mark.parametrize("said", ["test", "no split"])
def test_features_of_another_partition(raw, said):
    images = karpathy_images()
    images[4]["split"] = said
    write_karpathy(raw, [image for image in images if image["split"] != "no split"])
    with refused("id '4'", found=f"train, but {said} in dataset_flickr30k", do="same partition"):
        flickr30k.read(raw, Options(annotations="precomp"))


def test_captions_without_pictures(captions):
    for split in flickr30k.IMAGES:
        tables = flickr30k.read(captions, Options(split=split, with_pictures=False))
        assert set(tables.images["file"]) == {""} and splits(tables) == of_lists(split)
    with refused(expected="a picture", found="nothing", do="place flickr30k-images/"):
        flickr30k.pictures(captions, Options(with_pictures=False))("")


UNUSABLE = [
    ({"split": "karpaty"}, "split", "one of karpathy, entities, ", "'karpaty'"),
    (
        {"annotations": "official"},
        *("annotations", "karpathy or precomp with the split karpathy", "'official'"),
    ),
    (
        {"split": "m_rnn", "annotations": "precomp"},
        *("annotations", "official with the split m_rnn", "'precomp'"),
    ),
]


@pytest.mark.parametrize(("options", "name", "expected", "found"), UNUSABLE)
def test_unusable_options(options, name, expected, found):
    with refused(f"flickr30k: option {name}", expected, found):
        Options(**options)


MISSING = {  # file -> split, and where, expected, found
    flickr30k.KARPATHY: ("karpathy", "raw", "dataset_flickr30k.json", "no annotations"),
    flickr30k.TOKENS: ("entities", "raw", "results_20130124.token or flickr30k.tar", "no captions"),
    "val.txt": ("entities", "val.txt", "a text file", "nothing"),
    "m_rnn_test.txt": ("m_rnn", "m_rnn_test.txt", "a text file", "nothing"),
    "Flickr_8k.devImages.txt": (
        *("flickr8k_based", "Flickr_8k.devImages.txt", "a text file", "nothing"),
    ),
}


@pytest.mark.parametrize("name", MISSING)
def test_missing_file(raw, name):
    split, *fields = MISSING[name]
    (raw / name).unlink()
    with refused(*fields):
        flickr30k.read(raw, Options(split=split))


def test_missing_pictures(captions):
    for function in (flickr30k.read, flickr30k.inventory, flickr30k.pictures):
        with refused(captions, "flickr30k-images/ or flickr30k-images.zip", "no pictures"):
            function(captions)


def test_a_folder_without_pictures_is_no_store(captions):
    folder = captions / flickr30k.IMAGE_FOLDER
    folder.mkdir()
    (folder / "readme.txt").touch()
    for function in (flickr30k.read, flickr30k.inventory, flickr30k.pictures):
        with refused(captions, "with .jpg files in it", "no pictures"):
            function(captions)
    assert set(flickr30k.read(captions, Options(annotations="precomp")).images["file"]) == {""}


@pytest.mark.parametrize("line", ["1001.jpg#0 no tab", "1001.jpg\tno number", "1001.jpg#0\t ", ""])
def test_bad_caption_line(raw, line):
    path = raw / flickr30k.TOKENS
    lines = path.read_text().split("\n")
    path.write_text("\n".join([*lines[:6], line, *lines[7:]]))
    with refused("results_20130124.token:7", "name#k, a tab and a caption", repr(line)):
        flickr30k.read(raw, Options(split="entities"))


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


def test_bad_archives(raw):
    (raw / flickr30k.TOKENS).unlink()
    (raw / flickr30k.TOKENS_TAR).write_bytes(b"\x1f\x8b\x08 cut")
    with refused("flickr30k.tar.gz: results_20130124.token", found="damage"):
        flickr30k.read(raw, Options(split="entities"))
    with tarfile.open(raw / flickr30k.TOKENS_TAR, "w:gz") as archive:
        archive.add(raw / "val.txt", "val.txt")
    with refused("flickr30k.tar.gz", "results_20130124.token", "nothing of this name"):
        flickr30k.read(raw, Options(split="entities"))
    pack_pictures(raw)
    content = (raw / flickr30k.IMAGE_ZIP).read_bytes()
    (raw / flickr30k.IMAGE_ZIP).write_bytes(content[:-30])
    with refused("flickr30k-images.zip", "a whole zip archive", "damage"):
        flickr30k.inventory(raw)


@pytest.mark.parametrize(
    ("change", "where", "expected", "found"),
    [
        ({"split": "restval"}, "images[1]: split", "one of train, val, test", "'restval'"),
        ({"filename": "1001.jpg"}, "images[1]: filename", "once", "'1001.jpg' a second time"),
        ({"imgid": "1"}, "images[1]: imgid", "int", "'1'"),
    ],
)
def test_malformed_karpathy(raw, change, where, expected, found):
    images = karpathy_images()
    images[1] |= change
    write_karpathy(raw, images)
    with refused(where, expected, found):
        flickr30k.read(raw)


def test_karpathy_without_images(raw):
    write_karpathy(raw, [])
    with refused("dataset_flickr30k.json: images", "at least one", "none"):
        flickr30k.read(raw)


# The stages ----------------------------------------------------------------------------------


@pytest.fixture
def work(tmp_path, monkeypatch) -> Path:
    """Stages run in a fresh folder, and the cards expect the small numbers."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    small = {
        split: {part: len(ids) for part, ids in parts.items()}
        for split, parts in PARTITIONS.items()
    }
    monkeypatch.setattr(flickr30k, "IMAGES", small)
    return folder


def configure(**options) -> None:
    write_params(
        params_of(datasets={"flickr30k": DatasetSettings(reader="flickr30k", options=options)})
    )


def run(stage, *words: str) -> int:
    return run_stage("", stage.configure, stage.main, ["flickr30k", *words])


@pytest.mark.usefixtures("work")
@pytest.mark.parametrize("split", PARTITIONS)
def test_fetch_and_prepare(raw, split):
    configure(split=split)
    assert run(fetch, "--source", str(raw)) == 0
    assert run(prepare) == 0
    data = prepared_tables.read("flickr30k")
    assert data.card["split"] == split
    captions = {part: data.card["counts"][part]["captions"] for part in PARTITIONS[split]}
    assert captions == {part: 5 * len(ids) for part, ids in PARTITIONS[split].items()}


@pytest.mark.usefixtures("work")
def test_fetch_and_prepare_features_without_pictures(captions):
    configure(annotations="precomp")
    assert run(fetch, "--source", str(captions)) == 0
    assert run(prepare) == 0
    assert set(prepared_tables.read("flickr30k").images["file"]) == {""}


@pytest.mark.usefixtures("work")
def test_an_incomplete_copy_is_refused(raw):
    configure()
    write_karpathy(raw, karpathy_images()[:-1])
    assert run(fetch, "--source", str(raw)) == 0
    check(refusal(prepare, "flickr30k"), "split test", "2 images", "1")


@pytest.mark.usefixtures("work")
def test_fetch_says_in_one_line_what_is_missing(captions, capsys):
    configure()
    assert run(fetch, "--source", str(captions)) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "expected flickr30k-images/" in line and "found no pictures" in line

"""Malformed files of every format that the field shares: one line of the stage that meets them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import layouts
import numpy as np
import pytest
from raw_formats import (
    BOXES,
    FLICKR,
    FLICKR_IDS,
    FORMATS,
    NUMBERS,
    season_of,
    small_cards,
    write_weights,
)
from refusals import check, outcome

from benchmark.encode import __main__ as encode
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare
from benchmark.season.parameter_files import Local, write_local, write_params
from benchmark.season.parameters import Params
from datasets import DataError


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        small_cards(patch)
        yield


@pytest.fixture(scope="module")
def weights_dir(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    write_weights(folder)
    return folder


def remove(file: str) -> Callable[[Path], None]:
    return lambda raw: (raw / file).unlink()


def cut(file: str, count: int = 40) -> Callable[[Path], int]:
    return lambda raw: (raw / file).write_bytes((raw / file).read_bytes()[:-count])


def swap(file: str, old: str, new: str) -> Callable[[Path], None]:
    """Replaces the first `old`."""

    def spoil(raw: Path) -> None:
        text = (raw / file).read_text()
        assert old in text
        (raw / file).write_text(text.replace(old, new, 1))

    return spoil


def set_line(file: str, number: int, *lines: str) -> Callable[[Path], None]:
    return lambda raw: layouts.replace_line(raw / file, number, *lines)


def fewer_rows(file: str) -> Callable[[Path], None]:
    return lambda raw: np.save(raw / file, np.load(raw / file)[:-1])


def lines_of_captions(raw: Path) -> None:
    """One id per caption, two of them swapped."""
    lines = [number for number in NUMBERS["val"] for _ in range(5)]
    lines[4], lines[5] = lines[5], lines[4]
    layouts.write_lines(raw / "f30k_precomp/dev_ids.txt", lines)


def ids_turned(raw: Path) -> None:
    layouts.write_lines(raw / "vgg_feats_ids.txt", FLICKR_IDS[::-1])


def box_outside(file: str, write: Callable) -> Callable[[Path], None]:
    return lambda raw: write(raw / file, [*BOXES, (50, 30, 70, 39)])


def no_objects(raw: Path) -> None:
    path = raw / f"Annotations/{FLICKR_IDS[1]}.xml"
    head, _, rest = path.read_text().partition("<object>")
    path.write_text(head + rest[rest.rindex("</object>") + len("</object>") :])


def scores_without_boxes(raw: Path) -> None:
    np.savez(raw / f"boxes/{FLICKR_IDS[2]}.npz", boxes=BOXES, scores=[1.0])


FIRST, LAST = FLICKR_IDS[0], FLICKR["test"][-1]
JSON, TOKENS, CAPTIONS = "dataset_flickr30k.json", "results_20130124.token", "dev_caps.txt"
NOTHING = "nothing"
# What is spoilt, and where, expected and found of the error; of `encode`, texts of its line.
MALFORMED = {
    "flickr30k, Karpathy": {
        "fetch": [
            (remove(JSON), "data/raw", JSON, "no annotations"),
        ],
        "prepare": [
            (cut(JSON), JSON, "JSON", "something else"),
            (
                swap(JSON, f'"raw": "{layouts.sentences(FLICKR_IDS[1])[2]}"', '"raw": " "'),
                *(f"{JSON}: images[1].sentences[2]: raw", "a caption", "' '"),
            ),
            (
                swap(JSON, f'"filename": "{LAST}.jpg"', f'"filename": "{FIRST}.jpg"'),
                *(f"{JSON}: images[19]: filename", "once", f"'{FIRST}.jpg' a second time"),
            ),
            (
                remove(f"flickr30k-images/{FIRST}.jpg"),
                *(f"flickr30k: {FIRST}.jpg", "a whole picture", "cannot be decoded"),
            ),
            (
                cut(f"flickr30k-images/{FIRST}.jpg", 400),
                *(f"flickr30k: {FIRST}.jpg", "a whole picture", "cannot be decoded"),
            ),
        ],
    },
    "flickr30k, entities": {
        "fetch": [
            (remove("val.txt"), "val.txt", "a raw file", NOTHING),
            (remove(TOKENS), "data/raw", TOKENS, "no captions"),
        ],
        "prepare": [
            (
                set_line(TOKENS, 7, "1037.jpg#1 no tab"),
                f"{TOKENS}:7",
                "name#k, a tab and",
                "no tab",
            ),
            (set_line(TOKENS, 7, "1037.jpg#1\t "), f"{TOKENS}:7", "name#k, a tab and a", "1037"),
            (set_line(TOKENS, 7), "split train", "60 captions", "59"),
            (
                set_line("test.txt", 2, FIRST),
                *("test.txt:2", "the id of another image", f"'{FIRST}': already in train"),
            ),
            (set_line("val.txt", 4), "split val", "4 images", "3"),
        ],
    },
    "flickr30k, precomp": {
        "fetch": [
            (remove("f30k_precomp/dev_ims.npy"), "f30k_precomp/dev_ims.npy", "a raw", NOTHING),
        ],
        "prepare": [
            (
                cut("f30k_precomp/test_ims.npy"),
                *("f30k_precomp/test_ims.npy", "a whole NumPy array", "damage"),
            ),
            (
                fewer_rows("f30k_precomp/test_ims.npy"),
                *("test_ims.npy: rows", "4 (one per image)", "3"),
            ),
            (lines_of_captions, "f30k_precomp/dev_ids.txt:5", repr(NUMBERS["val"][0]), ""),
            (
                set_line(f"f30k_precomp/{CAPTIONS}", 3, "a\tb"),
                *(f"{CAPTIONS}:3", "a caption without tabs", r"'a\tb'"),
            ),
            (
                set_line(f"f30k_precomp/{CAPTIONS}", 3, " "),
                *(f"{CAPTIONS}:3", "a caption without tabs", "' '"),
            ),
            (
                set_line("f30k_precomp/test_ids.txt", 1, NUMBERS["train"][3]),
                *("f30k_precomp: id", "one split per image", "train and test"),
            ),
        ],
    },
    "flickr30k, mat": {
        "encode": [
            (remove("vgg_feats.mat"), "vgg_feats.mat", "place"),
            (
                cut("vgg_feats.mat"),
                "vgg_feats.mat",
                "expected a .mat file, found something else",
            ),
            (
                lambda raw: layouts.write_mat(raw / "vgg_feats.mat", FLICKR_IDS[1:]),
                *("vgg_feats.mat", "expected 20 columns", f"of {JSON}, found 19"),
            ),
            (ids_turned, "vgg_feats_ids.txt: line 1", f"expected '{FIRST}' as in {JSON}, found"),
        ],
    },
    "flickr30k, npy": {
        "encode": [
            (remove("fc7_ids.txt"), "fc7_ids.txt", "expected the image ids of fc7.npy"),
            (cut("fc7.npy"), "fc7.npy", "expected 480 bytes for float32 (20, 6), found 440"),
            (fewer_rows("fc7.npy"), "fc7_ids.txt", "expected 19 image ids, as many as fc7.npy has"),
            (
                set_line("fc7_ids.txt", 2, "1000"),
                *("fc7.npy: image '1000'", "expected once, found twice"),
            ),
        ],
    },
    "mscoco, Karpathy": {
        "fetch": [
            (remove("dataset_coco.json"), "data/raw", "dataset_coco.json", "no annotations"),
        ],
        "prepare": [
            (
                swap("dataset_coco.json", '"cocoid": 1322', '"cocoid": "x"'),
                *("dataset_coco.json: images[", "int", "'x'"),
            ),
            (
                swap("dataset_coco.json", '"split": "val"', '"split": "dev"'),
                *("dataset_coco.json: images[", "one of train, restval, val, test", "'dev'"),
            ),
            (
                swap("dataset_coco.json", '"split": "test"', '"split": "val"'),
                *("split val", "4 images", "5"),
            ),
        ],
    },
    "mscoco, precomp": {
        "fetch": [
            (
                remove("coco_precomp/testall_caps.txt"),
                *("coco_precomp/testall_caps.txt", "5,000 test images", NOTHING),
            ),
        ],
        "prepare": [
            (
                cut("coco_precomp/testall_ims.npy"),
                *("testall_ims.npy", "a whole NumPy array", "damage"),
            ),
            (
                set_line("coco_precomp/testall_ids.txt", 2),
                *("testall_ids.txt: lines", "10 (one per image)", "9"),
            ),
        ],
    },
    "mscoco, tsv": {
        "encode": [
            (
                remove("trainval_36/trainval.tsv.1"),
                *("", "expected features in trainval.tsv.0, found those of 15 of 26 images"),
            ),
            (
                cut("trainval_36/trainval.tsv.1", 20),
                *("trainval.tsv.1: line 12", "expected numbers"),
            ),
            (
                set_line("trainval_36/trainval.tsv.0", 3, "1\t2"),
                *("trainval.tsv.0: line 3", "expected"),
            ),
        ],
    },
    "cuhk_pedes": {
        "fetch": [
            (
                remove("reid_raw.json"),
                *("data/raw", "reid_raw.json, there or in CUHK-PEDES/", NOTHING),
            ),
            (cut("reid_raw.json"), "reid_raw.json", "JSON", "something else"),
            (
                swap("reid_raw.json", '"split": "train"', '"split": "test"'),
                *("reid_raw.json: [1] CUHK01/1.png: id 1", "one split per person", "train, but"),
            ),
            (
                swap("reid_raw.json", layouts.sentences("3")[0], r"A\tman."),
                *("reid_raw.json: [6] cam_a/3_1.bmp: captions[0]", "one line without tabs", "A"),
            ),
            (
                swap("reid_raw.json", layouts.sentences("3")[0], ""),
                *("reid_raw.json: [6] cam_a/3_1.bmp: captions[0]", "a sentence", "''"),
            ),
        ],
    },
    "entities, mat": {
        "fetch": [
            (
                set_line("test.txt", 2, FIRST),
                *("test.txt:2", "the id of another image", f"'{FIRST}', already in train"),
            ),
            (remove(f"Sentences/{LAST}.txt"), f"Sentences/{LAST}.txt", "a raw file", NOTHING),
        ],
        "prepare": [
            (
                no_objects,
                *(f"Annotations/{FLICKR_IDS[1]}.xml", "objects, as the sentences name 'A ", "none"),
            ),
            (
                cut(f"Annotations/{LAST}.xml"),
                *(f"Annotations/{LAST}.xml", "whole XML", "damage"),
            ),
            (
                swap(f"Annotations/{LAST}.xml", "<ymax>20<", "<ymax>43<"),
                *(f"Annotations/{LAST}.xml: object 3: box", "within the picture", "41 6 58 43"),
            ),
            (
                set_line(f"Sentences/{LAST}.txt", 5, " "),
                *(f"Sentences/{LAST}.txt", "5 sentences", "4"),
            ),
        ],
        "encode": [
            (remove(f"boxes/{FIRST}.mat"), f"boxes/{FIRST}.npz", f"{FIRST}.mat"),
            (cut(f"boxes/{FIRST}.mat"), f"boxes/{FIRST}.mat", "expected a .mat file"),
            (
                box_outside(f"boxes/{FIRST}.mat", layouts.write_edge_boxes),
                *(f"boxes/{FIRST}.mat: row 1", "x0 < x1 and y0 < y1 inside a picture of 60 x"),
            ),
        ],
    },
    "entities, npz": {
        "encode": [
            (
                box_outside(f"boxes/{LAST}.npz", layouts.write_npz_boxes),
                *(f"boxes/{LAST}.npz: row 1", "x0 < x1 and y0 < y1 inside a picture of 60 x"),
            ),
            (
                scores_without_boxes,
                *(f"boxes/{FLICKR_IDS[2]}.npz: scores", "expected 6, one", "found 1"),
            ),
        ],
    },
}
FAULTS = [
    pytest.param(name, stage, spoil, fields, id=f"{name}-{stage}-{number}")
    for name, stages in MALFORMED.items()
    for stage, faults in stages.items()
    for number, (spoil, *fields) in enumerate(faults)
]


@pytest.mark.parametrize(("name", "stage", "spoil", "fields"), FAULTS)
def test_a_malformed_file_stops_its_stage_with_one_line(
    name, stage, spoil, fields, tmp_path, monkeypatch, capsys, weights_dir
):
    monkeypatch.chdir(tmp_path)
    FORMATS[name].write(tmp_path / "mine")
    spoil(tmp_path / "mine")
    params = season_of(name, weights_dir)
    write_params(params)
    write_local(Local(weights_dir=str(weights_dir)))
    refused_by, error = first_refusal(params, FORMATS[name].reader)
    assert refused_by == stage
    if stage == "encode":
        assert all(text in str(error) for text in fields), error
    else:
        check(error, *fields)
    printed = capsys.readouterr().err.splitlines()
    assert all(line.startswith("[") for line in printed), "checklists, and nothing else"


def first_refusal(params: Params, dataset: str) -> tuple[str, DataError]:
    """The first stage that refuses its work, and with which error."""
    seen = [
        key
        for key, feature_set in params.feature_sets.items()
        if feature_set.kind in ("pictures", "proposals")
    ]
    steps = [(fetch, [dataset, "--source", "mine"]), (prepare, [dataset])]
    for stage, words in [*steps, *((encode, [key]) for key in seen)]:
        error = outcome(stage, *words)
        if error is not None:
            return stage.__name__.split(".")[1], error
    return pytest.fail("no stage refused its work")

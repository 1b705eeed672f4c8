"""Every format that the field shares, written small in its real layout, from fetch to the record;
and what is wrong with a file, in one line of the stage that meets it."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import layouts
import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torchvision import models

from benchmark.core.command_line import run_stage
from benchmark.core.records import Record, read_record
from benchmark.encode import __main__ as encode
from benchmark.encode import proposals
from benchmark.evaluate import __main__ as evaluate
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare
from benchmark.season.parameters import DatasetSettings, ImageEncoder, Params, ProposalEncoder, SentenceEncoder, WordVectors
from benchmark.season.presets import presets
from benchmark.season.season_files import Season
from benchmark.season.resolving import resolve
from benchmark.season.parameter_files import write_params
from benchmark.train import __main__ as train
from datasets import cuhk_pedes, flickr30k, flickr30k_entities, mscoco

# Images, in an order that sorting would not give.
FLICKR_IDS = random.Random(0).sample([str(1000 + 37 * n) for n in range(20)], 20)
FLICKR = {"train": FLICKR_IDS[:12], "val": FLICKR_IDS[12:16], "test": FLICKR_IDS[16:]}
NUMBERS = {part: [str(FLICKR_IDS.index(i)) for i in ids] for part, ids in FLICKR.items()}  # imgid
COCO_IDS = random.Random(1).sample([str(9 + 1313 * n) for n in range(26)], 26)
COCO = {"train": COCO_IDS[:9], "restval": COCO_IDS[9:12], "val": COCO_IDS[12:16]}
COCO |= {"test": COCO_IDS[16:]}
PERSONS = {person: "train" for person in (1, 2, 3, 4)} | {5: "val", 6: "val", 7: "test", 8: "test"}

IMAGES = {"train": 12, "val": 4, "test": 4}
COCO_IMAGES = {"train": 12, "val": 4, "test": 10}
BOXES = [  # the third is the person's; none is near the hat's
    *[(0, 0, 60, 40), (0, 20, 12, 40), layouts.PERSON],
    *[(30, 22, 50, 39), (2, 30, 9, 38), (20, 0, 39, 9)],
]


def of_five(counts: dict[str, int]) -> dict[str, int]:
    return {part: 5 * count for part, count in counts.items()}


@pytest.fixture(scope="module", autouse=True)
def small_cards() -> Iterator[None]:
    """The cards expect the small numbers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flickr30k, "IMAGES", dict.fromkeys(flickr30k.IMAGES, IMAGES))
        patch.setattr(mscoco, "IMAGES", {True: COCO_IMAGES})
        patch.setattr(mscoco, "CAPTIONS", {True: of_five(COCO_IMAGES) | {"train": 63}})
        patch.setattr(mscoco, "PRECOMP_CAPTIONS", of_five(COCO_IMAGES))
        patch.setattr(cuhk_pedes, "IMAGES", {"train": 12, "val": 6, "test": 6})
        patch.setattr(cuhk_pedes, "CAPTIONS", {None: {"train": 25, "val": 12, "test": 12}})
        small = {"expected_images": IMAGES, "expected_captions": of_five(IMAGES)}
        patch.setattr(flickr30k_entities, "CARD", replace(flickr30k_entities.CARD, **small))
        yield


# Raw folders ---------------------------------------------------------------------------------


def flickr_pictures(raw: Path) -> None:
    for image_id in FLICKR_IDS:
        layouts.draw(raw / "flickr30k-images" / f"{image_id}.jpg", int(image_id))


def flickr_json(raw: Path) -> None:
    split_of = {image_id: part for part, ids in FLICKR.items() for image_id in ids}
    images = [
        {"filename": f"{i}.jpg", "split": split_of[i], "captions": layouts.sentences(i)}
        for i in FLICKR_IDS
    ]
    layouts.write_karpathy(raw / "dataset_flickr30k.json", images)


def flickr_karpathy(raw: Path) -> None:
    flickr_json(raw)
    flickr_pictures(raw)


def flickr_official(raw: Path) -> None:
    """With the lists of all three partitions; m-RNN's may have the names of files."""
    layouts.write_tokens(raw / "results_20130124.token", sorted(FLICKR_IDS))
    flickr_pictures(raw)
    for part, ids in FLICKR.items():
        layouts.write_lines(raw / f"{part}.txt", ids)
        layouts.write_lines(raw / f"m_rnn_{part}.txt", [f"{image_id}.jpg" for image_id in ids])
    for part, name in (("val", "dev"), ("test", "test")):
        names = [f"{image_id}_03d33305cf.jpg" for image_id in FLICKR[part]]
        layouts.write_lines(raw / f"Flickr_8k.{name}Images.txt", names)


def flickr_precomp(raw: Path) -> None:
    parts = {"train": NUMBERS["train"], "dev": NUMBERS["val"], "test": NUMBERS["test"]}
    layouts.write_precomp(raw / "f30k_precomp", parts)


def flickr_mat(raw: Path) -> None:
    flickr_json(raw)
    layouts.write_mat(raw / "vgg_feats.mat", FLICKR_IDS)


def flickr_npy(raw: Path) -> None:
    flickr_json(raw)
    layouts.write_npy(raw / "fc7.npy", sorted(FLICKR_IDS))


def coco_name(part: str, image_id: str) -> tuple[str, str]:
    folder = "train2014" if part == "train" else "val2014"
    return folder, f"COCO_{folder}_{int(image_id):012}.jpg"


def coco_json(raw: Path) -> None:
    """By number, as the splits are mixed; one caption more than five in each image of restval, and
    in one of the test images."""
    entries = []
    for image_id, part in sorted((i, part) for part, ids in COCO.items() for i in ids):
        folder, name = coco_name(part, image_id)
        captions = layouts.sentences(image_id)
        if part == "restval" or image_id == COCO["test"][0]:
            captions.append("One more . ")
        entries.append({"filepath": folder, "filename": name, "split": part, "captions": captions})
        entries[-1]["cocoid"] = int(image_id)
    layouts.write_karpathy(raw / "dataset_coco.json", entries)


def coco_karpathy(raw: Path) -> None:
    coco_json(raw)
    for part, ids in COCO.items():
        for image_id in ids:
            layouts.draw(raw.joinpath(*coco_name(part, image_id)), int(image_id))


def coco_precomp(raw: Path) -> None:
    """A line of ids an image, a row of features an image, and test_* within testall_*."""
    parts = {"train": COCO["train"] + COCO["restval"], "dev": COCO["val"]}
    parts |= {"test": COCO["test"][:3], "testall": COCO["test"]}
    layouts.write_precomp(raw / "coco_precomp", parts)


def coco_tsv(raw: Path) -> None:
    """In parts, and with an image that the dataset does not have."""
    coco_json(raw)
    ids = sorted(COCO_IDS, reverse=True)
    layouts.write_tsv(raw / "trainval_36/trainval.tsv.0", ids[:15])
    layouts.write_tsv(raw / "trainval_36/trainval.tsv.1", ["777777", *ids[15:]])


def coco_mat(raw: Path) -> None:
    coco_json(raw)
    layouts.write_mat(raw / "vgg_feats.mat", sorted(COCO_IDS))


def persons(raw: Path) -> None:
    layouts.write_persons(raw, PERSONS)


def entities_mat(raw: Path) -> None:
    layouts.write_entities(raw, FLICKR)
    for image_id in FLICKR_IDS:
        layouts.write_edge_boxes(raw / "boxes" / f"{image_id}.mat", BOXES)


def entities_npz(raw: Path) -> None:
    layouts.write_entities(raw, FLICKR)
    for image_id in FLICKR_IDS:
        layouts.write_npz_boxes(raw / "boxes" / f"{image_id}.npz", BOXES)


# Seasons -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Format:
    """How its raw folder is written, what a season says of it, and what its records tell."""

    reader: str
    write: Callable[[Path], None]
    presets: tuple[str, ...]
    split: str = "karpathy"
    images: int = 4
    captions: int = 20
    options: dict = field(default_factory=dict)  # of the reader
    features: dict = field(default_factory=dict)  # network -> file that is imported


FROM_PIXELS = ("dual_path_cuhk_1", "dual_path_cuhk_2")
WHOLE_AND_PHRASES = ("two_branch_constraints", "two_branch_phrase_sampling", "two_branch_weighted")
FORMATS = {
    "flickr30k, Karpathy": Format(
        reader="flickr30k", write=flickr_karpathy, presets=("two_branch_constraints",)
    ),
    **{
        f"flickr30k, {split}": Format(
            reader="flickr30k",
            write=flickr_official,
            presets=("cca",),
            split=split,
            options={"split": split},
        )
        for split in ("entities", "flickr8k_based", "m_rnn")
    },
    "flickr30k, precomp": Format(
        reader="flickr30k",
        write=flickr_precomp,
        presets=("scan_t2i_avg",),
        options={"annotations": "precomp"},
        features={"bottom_up": "f30k_precomp"},
    ),
    "flickr30k, mat": Format(
        reader="flickr30k",
        write=flickr_mat,
        presets=("two_branch_bidirectional",),
        options={"with_pictures": False},
        features={"vgg19": "vgg_feats.mat"},
    ),
    "flickr30k, npy": Format(
        reader="flickr30k",
        write=flickr_npy,
        presets=("two_branch_bidirectional",),
        options={"with_pictures": False},
        features={"vgg19": "fc7.npy"},
    ),
    "mscoco, Karpathy": Format(
        reader="mscoco",
        write=coco_karpathy,
        presets=("two_branch_constraints",),
        images=10,
        captions=50,
    ),
    "mscoco, precomp": Format(
        reader="mscoco",
        write=coco_precomp,
        presets=("scan_i2t_lse_mscoco",),
        images=10,
        captions=50,
        options={"annotations": "precomp"},
        features={"bottom_up": "coco_precomp"},
    ),
    "mscoco, tsv": Format(
        reader="mscoco",
        write=coco_tsv,
        presets=("scan_t2i_avg",),
        images=10,
        captions=50,
        options={"with_pictures": False},
        features={"bottom_up": "trainval_36"},
    ),
    "mscoco, mat": Format(
        reader="mscoco",
        write=coco_mat,
        presets=("two_branch_bidirectional",),
        images=10,
        captions=50,
        options={"with_pictures": False},
        features={"vgg19": "vgg_feats.mat"},
    ),
    "cuhk_pedes": Format(
        reader="cuhk_pedes",
        write=persons,
        presets=FROM_PIXELS,
        split="official",
        images=6,
        captions=12,
    ),
    "entities, mat": Format(
        reader="flickr30k_entities",
        write=entities_mat,
        presets=("two_branch_phrase_augmented", "cca_phrases", *WHOLE_AND_PHRASES),
        split="entities",
    ),
    "entities, npz": Format(
        reader="flickr30k_entities",
        write=entities_npz,
        presets=("cca_phrases",),
        split="entities",
    ),
}
IMPORTED = [name for name, known in FORMATS.items() if known.features]
TINY = {
    "two_branch_embedding": {"hidden_size": 16, "embedding_size": 8, "epochs": 1},
    "two_branch_phrase_embedding": {"hidden_size": 16, "embedding_size": 8, "epochs": 1},
    "scan": {"regions": 3, "embedding_size": 8, "word_size": 8, "epochs": 1, "decay_after": 1},
    "dual_path": {
        **{"blocks": "1,1,1,1", "text_width": 1 / 64, "word_size": 4, "hidden_size": 8},
        **{"image_hidden_size": 8, "embedding_size": 8, "epochs": 1},
    },
}


@pytest.fixture(scope="module")
def weights_dir(tmp_path_factory) -> Path:
    """An image network that knows nothing, but whose features are of the usual size."""
    folder = tmp_path_factory.mktemp("weights")
    torch.manual_seed(0)
    network = models.mobilenet_v2(weights=None)
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = 1.0  # so that one batch is enough
    network(torch.rand(16, 3, 64, 64))
    torch.save(network.state_dict(), folder / "mobilenet_v2-1.pth")
    return folder


def season_of(name: str, weights_dir: Path) -> Params:
    known = FORMATS[name]
    vectors = {"hglmm": SentenceEncoder(centres=1, size=8)}
    network = next(iter(known.features), "mobilenet_v2")
    settings = DatasetSettings(
        options=known.options,
        features=known.features,
        image=ImageEncoder(
            network=network,
            input_size=32,
            grid=2,
            flip=False,
            pixels=36 * (known.presets == FROM_PIXELS),
        ),
        words=WordVectors(size=4),
        sentence=vectors,
        phrases=vectors,
        proposals=ProposalEncoder(how="file", boxes="boxes", count=8, input_size=64),
    )
    played = {presets()[preset][0] for preset in known.presets}
    season = Season(
        title="Tiny",
        datasets={known.reader: settings},
        presets=list(known.presets),
        seeds=[0],
        device="cpu",
        weights_dir=str(weights_dir),
        options={method: TINY[method] for method in played if method in TINY},
    )
    return resolve("tiny", season)


Play = Callable[[str], Path]


@pytest.fixture(scope="module")
def play(tmp_path_factory, weights_dir) -> Play:
    """Plays the season of a format, once; gives the folder in which it was played."""

    @cache
    def played(name: str) -> Path:
        folder, known = tmp_path_factory.mktemp("played"), FORMATS[name]
        known.write(folder / "mine")
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setattr(proposals, "CELLS", 1)  # CCA of 5,120 numbers takes its time
            params = season_of(name, weights_dir)
            fetch.fetch(params, known.reader, folder / "mine")
            prepare.prepare(params, known.reader)
            for encoding in params.feature_sets.values():
                encode.encode(params, encoding)
            for cell in params.cells.values():
                train.train_cell(params, cell)
            for cell in (*params.cells.values(), *params.fusions.values()):
                evaluate.evaluate_cell(params, cell)
        return folder

    return played


def cell_of(play: Play, name: str, preset: str) -> Path:
    return play(name) / "results/tiny" / FORMATS[name].reader / preset / "0"


def ranks_of(play: Play, name: str, preset: str) -> pd.DataFrame:
    return pd.read_parquet(cell_of(play, name, preset) / "scores/ranks.parquet")


def record_of(play: Play, name: str, preset: str) -> Record:
    return read_record(cell_of(play, name, preset))


def queries(ranks: pd.DataFrame) -> dict[str, int]:
    return ranks.groupby("direction").size().to_dict()


CELLS = [(name, preset) for name, known in FORMATS.items() for preset in known.presets]


@pytest.mark.parametrize(("name", "preset"), CELLS)
def test_every_format_is_played_to_its_record(play, name, preset):
    record, known = record_of(play, name, preset), FORMATS[name]
    assert (record.status, record.reason) == ("ok", "")
    assert record.split == f"{known.split}/test"
    assert (record.images, record.captions) == (known.images, known.captions)
    ranks = ranks_of(play, name, preset)
    if record.task == "localisation":
        assert queries(ranks) == {"p2r": 5 * known.images}
    elif known.reader == "cuhk_pedes":
        assert queries(ranks) == {"t2i": known.captions}
    else:
        assert queries(ranks).items() >= {"i2t": known.images, "t2i": known.captions}.items()
    for way, found in ranks.groupby("direction")["rank"]:
        if way in ("i2t", "t2i", "p2r"):
            for k in (1, 5, 10):
                share = 100 * sum(rank < k for rank in found) / len(found)
                assert record.metrics[f"{way}_r{k}"] == pytest.approx(share)


@pytest.mark.parametrize("name", IMPORTED)
def test_imported_features_belong_to_their_images(play, name):
    known = FORMATS[name]
    record = record_of(play, name, known.presets[0])
    ((network, file),) = known.features.items()
    assert record.image_features["weights"]["file"] == file
    assert record.image_features["settings"]["network"] == network
    images = pd.read_parquet(play(name) / "data/prepared" / known.reader / "images.parquet")
    assert set(images["file"]) == {""}
    regions = np.stack([layouts.features_of(image_id) for image_id in images["image_id"]])
    (folder,) = (play(name) / "data/features" / known.reader).glob("*imported")
    if (folder / "regions.npy").is_file():
        assert np.load(folder / "regions.npy").tolist() == regions.astype(np.float16).tolist()
        pooled = regions.astype(np.float64).mean(1)
    else:
        pooled = regions.reshape(len(images), -1)
    np.testing.assert_allclose(np.load(folder / "pooled.npy"), pooled, rtol=1e-3)


@pytest.mark.parametrize("name", [name for name in FORMATS if name.startswith("mscoco")])
def test_five_folds_of_mscoco_are_judged_on_their_own(play, name):
    (preset,) = FORMATS[name].presets
    metrics = record_of(play, name, preset).metrics
    ranks = ranks_of(play, name, preset)
    assert queries(ranks).items() >= {"i2t_fold": 10, "t2i_fold": 50}.items()
    for way, per_fold, gallery in (("i2t", 2, 10), ("t2i", 10, 2)):
        within = ranks.loc[ranks["direction"] == f"{way}_fold", "rank"].to_numpy()
        whole = ranks.loc[ranks["direction"] == way, "rank"].to_numpy()
        assert (within <= whole).all() and within.max() < gallery
        folds = [100 * float((part < 1).mean()) for part in within.reshape(5, per_fold)]
        assert metrics["fold_values"][f"{way}_r1"] == pytest.approx(folds)
        assert metrics[f"fold_{way}_r1"] == pytest.approx(sum(folds) / 5)
    names = [f"fold_{way}_r{k}" for way in ("i2t", "t2i") for k in (1, 5, 10)]
    assert metrics["fold_rsum"] == pytest.approx(sum(metrics[name] for name in names))


def test_captions_of_mscoco_beyond_five_are_for_training_only(play):
    captions = pd.read_parquet(play("mscoco, tsv") / "data/prepared/mscoco/captions.parquet")
    more = captions[captions["text"] == "One more . "]
    assert set(more["image_id"]) == set(COCO["restval"]) and set(more["split"]) == {"train"}


@pytest.mark.parametrize("preset", FROM_PIXELS)
def test_persons_are_sought_by_text_alone(play, preset):
    metrics = record_of(play, "cuhk_pedes", preset).metrics
    assert not [key for key in metrics if key.startswith(("i2t", "s2s", "fold"))]
    assert metrics["rsum"] == pytest.approx(sum(metrics[f"t2i_r{k}"] for k in (1, 5, 10)))
    ranks = ranks_of(play, "cuhk_pedes", preset)
    assert ranks["rank"].max() <= 3  # of six pictures three show the right person


PHRASE_CELLS = [(name, preset) for name, preset in CELLS if "phrase" in preset]


@pytest.mark.parametrize(("name", "preset"), PHRASE_CELLS)
def test_phrases_are_sought_among_the_proposals_of_files(play, name, preset):
    """Of the five phrases of an image three name the person, who alone is among the proposals."""
    record = record_of(play, name, preset)
    assert (record.task, record.phrases) == ("localisation", 20)
    metrics = record.metrics
    assert metrics["p2r_bound"] == pytest.approx(100 * 3 / 5)
    assert metrics["p2r_chance_r1"] == pytest.approx(100 * 3 / 5 / len(BOXES))
    assert metrics["rsum"] == pytest.approx(sum(metrics[f"p2r_r{k}"] for k in (1, 5, 10)))
    assert not [key for key in metrics if key.startswith(("i2t", "t2i", "overlap"))]
    ranks = ranks_of(play, name, preset)
    assert ((ranks["rank"] < len(BOXES)) == ranks["query"].map(names_person)).all()
    with np.load(cell_of(play, name, preset) / "scores/samples.npz") as arrays:
        assert {tuple(box) for box in arrays["p2r_boxes"].tolist()} <= set(BOXES)
        assert len(arrays["p2r_boxes"]) == 20


def names_person(phrase_id: str) -> bool:
    """<image>.jpg#<sentence>/<phrase> of layouts.marked_sentences."""
    return phrase_id.partition("#")[2] in ("0/0", "1/0", "3/0")


def test_both_files_of_proposals_give_the_same_boxes(play):
    expected = np.zeros((20, 8, 4), np.float32)
    expected[:, : len(BOXES)] = BOXES
    for name in ("entities, mat", "entities, npz"):
        (path,) = (play(name) / "data/features/flickr30k_entities").glob("*/boxes.npy")
        np.testing.assert_array_equal(np.load(path), expected)
    first, second = (
        record_of(play, name, "cca_phrases").metrics for name in ("entities, mat", "entities, npz")
    )
    assert first == second


def test_regions_and_phrases_weigh_in_on_whole_images(play):
    record = record_of(play, "entities, mat", "two_branch_weighted")
    assert record.task == "retrieval" and 0 <= record.metrics["alpha"] <= 1
    assert set(record.options["weighted"]) == set(WHOLE_AND_PHRASES[:2])


# Malformed files -----------------------------------------------------------------------------


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
    """An id a caption, one of them in the wrong place."""
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
MALFORMED = {
    "flickr30k, Karpathy": {
        "fetch": [
            (remove(JSON), "no annotations; expected dataset_flickr30k.json"),
        ],
        "prepare": [
            (cut(JSON), f"{JSON}: not JSON"),
            (
                swap(JSON, f'"raw": "{layouts.sentences(FLICKR_IDS[1])[2]}"', '"raw": " "'),
                f"{JSON}: images[1].sentences[2]: raw: expected a caption, found ' '",
            ),
            (
                swap(JSON, f'"filename": "{LAST}.jpg"', f'"filename": "{FIRST}.jpg"'),
                f"{JSON}: images[19]: filename: '{FIRST}.jpg' occurs a second time",
            ),
            (remove(f"flickr30k-images/{FIRST}.jpg"), f"flickr30k: {FIRST}.jpg: cannot be decoded"),
            (
                cut(f"flickr30k-images/{FIRST}.jpg", 400),
                f"flickr30k: {FIRST}.jpg: cannot be decoded",
            ),
        ],
    },
    "flickr30k, entities": {
        "fetch": [
            (remove("val.txt"), "val.txt: not found"),
            (remove(TOKENS), f"no captions; expected {TOKENS}"),
        ],
        "prepare": [
            (set_line(TOKENS, 7, "1037.jpg#1 no tab"), f"{TOKENS}:7: expected name#k, a tab and"),
            (set_line(TOKENS, 7, "1037.jpg#1\t "), f"{TOKENS}:7: expected name#k, a tab and a"),
            (set_line(TOKENS, 7), "split train: expected 60 captions, found 59"),
            (set_line("test.txt", 2, FIRST), f"test.txt:2: '{FIRST}': already in train"),
            (set_line("val.txt", 4), "split val: expected 4 images, found 3"),
        ],
    },
    "flickr30k, precomp": {
        "fetch": [
            (remove("f30k_precomp/dev_ims.npy"), "f30k_precomp/dev_ims.npy: not found"),
        ],
        "prepare": [
            (cut("f30k_precomp/test_ims.npy"), "f30k_precomp/test_ims.npy: not a whole NumPy"),
            (fewer_rows("f30k_precomp/test_ims.npy"), "test_ims.npy: rows: expected 4 (one an ima"),
            (lines_of_captions, "f30k_precomp/dev_ids.txt:5: expected"),
            (set_line(f"f30k_precomp/{CAPTIONS}", 3, "a\tb"), f"{CAPTIONS}:3: expected a caption"),
            (set_line(f"f30k_precomp/{CAPTIONS}", 3, " "), f"{CAPTIONS}:3: expected a caption"),
            (set_line("f30k_precomp/test_ids.txt", 1, NUMBERS["train"][3]), "in train and in test"),
        ],
    },
    "flickr30k, mat": {
        "encode": [
            (remove("vgg_feats.mat"), "vgg_feats.mat: not found; place it there"),
            (cut("vgg_feats.mat"), "vgg_feats.mat: expected a .mat file, found something else or"),
            (
                lambda raw: layouts.write_mat(raw / "vgg_feats.mat", FLICKR_IDS[1:]),
                f"vgg_feats.mat: expected 20 columns, one an image of {JSON}, found 19",
            ),
            (ids_turned, f"vgg_feats_ids.txt: line 1: expected '{FIRST}' as in {JSON}, found"),
        ],
    },
    "flickr30k, npy": {
        "encode": [
            (remove("fc7_ids.txt"), "fc7_ids.txt: expected the image ids of fc7.npy"),
            (cut("fc7.npy"), "fc7.npy: expected 480 bytes for float32 (20, 6), found 440"),
            (fewer_rows("fc7.npy"), "fc7_ids.txt: expected 19 image ids, as many as fc7.npy has"),
            (set_line("fc7_ids.txt", 2, "1000"), "fc7.npy: image '1000': expected once, found twi"),
        ],
    },
    "mscoco, Karpathy": {
        "fetch": [
            (remove("dataset_coco.json"), "no annotations; expected dataset_coco.json"),
        ],
        "prepare": [
            (swap("dataset_coco.json", '"cocoid": 1322', '"cocoid": "x"'), "cocoid: expected int"),
            (swap("dataset_coco.json", '"split": "val"', '"split": "dev"'), "found 'dev'"),
            (swap("dataset_coco.json", '"split": "test"', '"split": "val"'), "expected 4 images"),
        ],
    },
    "mscoco, precomp": {
        "fetch": [
            (remove("coco_precomp/testall_caps.txt"), "coco_precomp/testall_caps.txt: not found"),
        ],
        "prepare": [
            (cut("coco_precomp/testall_ims.npy"), "testall_ims.npy: not a whole NumPy array"),
            (set_line("coco_precomp/testall_ids.txt", 2), "testall_ids.txt: lines: expected 10"),
        ],
    },
    "mscoco, tsv": {
        "encode": [
            (
                remove("trainval_36/trainval.tsv.1"),
                "expected features in trainval.tsv.0, found those of 15 of 26 images",
            ),
            (cut("trainval_36/trainval.tsv.1", 20), "trainval.tsv.1: line 12: expected numbers"),
            (set_line("trainval_36/trainval.tsv.0", 3, "1\t2"), "trainval.tsv.0: line 3: expected"),
        ],
    },
    "cuhk_pedes": {
        "fetch": [
            (remove("reid_raw.json"), "no reid_raw.json; expected it there or in CUHK-PEDES/"),
            (cut("reid_raw.json"), "reid_raw.json: not JSON"),
            (
                swap("reid_raw.json", '"split": "train"', '"split": "test"'),
                "reid_raw.json: [1] CUHK01/1.png: id 1 is in the split train, but",
            ),
            (
                swap("reid_raw.json", layouts.sentences("3")[0], r"A\tman."),
                r"reid_raw.json: [6] cam_a/3_1.bmp: captions[0]: expected one line without tabs",
            ),
            (
                swap("reid_raw.json", layouts.sentences("3")[0], ""),
                "reid_raw.json: [6] cam_a/3_1.bmp: captions[0]: expected a sentence, found ''",
            ),
        ],
    },
    "entities, mat": {
        "fetch": [
            (set_line("test.txt", 2, FIRST), f"test.txt:2: '{FIRST}': already in train"),
            (remove(f"Sentences/{LAST}.txt"), f"Sentences/{LAST}.txt: not found"),
        ],
        "prepare": [
            (
                no_objects,
                f"Annotations/{FLICKR_IDS[1]}.xml: expected objects, as the sentences name 'A ",
            ),
            (cut(f"Annotations/{LAST}.xml"), f"Annotations/{LAST}.xml: not whole XML"),
            (
                swap(f"Annotations/{LAST}.xml", "<ymax>20<", "<ymax>43<"),
                f"Annotations/{LAST}.xml: object 3: box 41 6 58 43 (xmin ymin xmax ymax) reaches",
            ),
            (set_line(f"Sentences/{LAST}.txt", 5, " "), f"Sentences/{LAST}.txt: expected 5 senten"),
        ],
        "encode": [
            (remove(f"boxes/{FIRST}.mat"), f"boxes/{FIRST}.npz: not found, nor {FIRST}.mat"),
            (cut(f"boxes/{FIRST}.mat"), f"boxes/{FIRST}.mat: expected a .mat file"),
            (
                box_outside(f"boxes/{FIRST}.mat", layouts.write_edge_boxes),
                f"boxes/{FIRST}.mat: row 1: expected x0 < x1 and y0 < y1 inside a picture of 60 x",
            ),
        ],
    },
    "entities, npz": {
        "encode": [
            (
                box_outside(f"boxes/{LAST}.npz", layouts.write_npz_boxes),
                f"boxes/{LAST}.npz: row 1: expected x0 < x1 and y0 < y1 inside a picture of 60 x",
            ),
            (
                scores_without_boxes,
                f"boxes/{FLICKR_IDS[2]}.npz: scores: expected 6, one for each box, found 1",
            ),
        ],
    },
}
FAULTS = [
    pytest.param(name, stage, *fault, id=f"{name}-{stage}-{number}")
    for name, stages in MALFORMED.items()
    for stage, faults in stages.items()
    for number, fault in enumerate(faults)
]


@pytest.mark.parametrize(("name", "stage", "spoil", "message"), FAULTS)
def test_a_malformed_file_stops_its_stage_with_one_line(
    name, stage, spoil, message, tmp_path, monkeypatch, capsys, weights_dir
):
    monkeypatch.chdir(tmp_path)
    FORMATS[name].write(tmp_path / "mine")
    spoil(tmp_path / "mine")
    params = season_of(name, weights_dir)
    write_params(params)
    assert first_refusal(params, FORMATS[name].reader) == stage
    *checklist, line = capsys.readouterr().err.splitlines()
    assert line.startswith("rematch: ") and message in line
    assert all(entry.startswith("[") for entry in checklist)


def first_refusal(params: Params, dataset: str) -> str | None:
    """The first stage that ends with status 2."""
    seen = [
        key for key, one in params.feature_sets.items() if one.kind in ("pictures", "proposals")
    ]
    steps = [(fetch, [dataset, "--source", "mine"]), (prepare, [dataset])]
    for stage, words in [*steps, *((encode, [key]) for key in seen)]:
        if run_stage("", stage.configure, stage.main, words):
            return stage.__name__.split(".")[1]
    return None

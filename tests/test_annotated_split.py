"""`score --annotations`: of files alone, with neither season nor pictures nor
training."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from refusals import check, refusal

from benchmark.__main__ import main
from benchmark.commands import score as command
from benchmark.commands.annotated_split import _with_enough_queries, annotated
from benchmark.contracts import datasets
from benchmark.contracts.datasets import Layer
from benchmark.stats.significance import score_interval

IMAGES, EACH = 40, 5
OWNER = np.repeat(np.arange(IMAGES), EACH)


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch) -> None:
    """A folder with no pictures in it, three vectors an image apart from noise."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    images = rng.normal(size=(IMAGES, 6)).astype(np.float32)
    np.save("a.npy", images)
    np.save(
        "b.npy", (images[OWNER] + rng.normal(size=(len(OWNER), 6))).astype(np.float32)
    )


def karpathy(name: str, split: str = "test", **facts: object) -> Path:
    """A JSON of Karpathy's with as many images as the vectors have."""
    images = [
        {"filename": f"{number}.jpg", "split": split, "cocoid": number, "imgid": number}
        | {
            "sentences": [
                {"raw": f"text {k}", "sentid": number * EACH + k} for k in range(EACH)
            ]
        }
        for number in range(IMAGES)
    ]
    Path(name).write_text(json.dumps({"images": images}))
    return Path(name)


def own(split: str | None = "test") -> Path:
    """A folder's annotations."""
    lines = [
        {
            "image": f"{number}.jpg",
            "captions": [f"text {number} {k}" for k in range(EACH)],
        }
        | ({"split": split} if split else {})
        for number in range(IMAGES)
    ]
    Path("notes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Path("notes.jsonl")


def score(
    *words: object, dataset: str = "folder", path: Path | str = "notes.jsonl"
) -> int:
    words = words or ("--images", "a.npy", "--captions", "b.npy")
    given = ["--dataset", dataset, "--annotations", str(path)]
    return main(["score", *given, *map(str, words)])


def refuse(*words: object, dataset: str = "folder", path: str = "notes.jsonl"):
    words = words or ("--images", "a.npy", "--captions", "b.npy")
    return refusal(command, "--dataset", dataset, "--annotations", path, *words)


def naive_ranks() -> dict[str, list[int]]:
    images, captions = np.load("a.npy").astype(float), np.load("b.npy").astype(float)
    ranks: dict[str, list[int]] = {"i2t": [], "t2i": []}
    cosines = [
        [float(a @ b / np.sqrt((a @ a) * (b @ b))) for b in captions] for a in images
    ]
    for i in range(IMAGES):
        best = max(cosines[i][c] for c in range(len(OWNER)) if OWNER[c] == i)
        wrong = [cosines[i][c] for c in range(len(OWNER)) if OWNER[c] != i]
        ranks["i2t"].append(sum(score >= best for score in wrong))
    for c in range(len(OWNER)):
        own = cosines[OWNER[c]][c]
        wrong = [cosines[i][c] for i in range(IMAGES) if i != OWNER[c]]
        ranks["t2i"].append(sum(score >= own for score in wrong))
    return ranks


def wilsons_interval_of_sum(
    ranks: dict[str, list[int]], cuts: list
) -> tuple[float, float]:
    left = np.zeros(IMAGES)
    for way, k in cuts:
        hits = [100 * (rank < k) for rank in ranks[way]]
        owners = range(IMAGES) if way == "i2t" else OWNER
        for owner, hit in zip(owners, hits, strict=True):
            left[owner] += (hit - np.mean(hits)) / len(hits)
    value = sum(100 * np.mean(np.array(ranks[way]) < k) for way, k in cuts)
    variance = IMAGES / (IMAGES - 1) * float((left**2).sum())
    return score_interval(value, variance, 100.0 * len(cuts), IMAGES)


@pytest.mark.parametrize("split", ["test", None])
def test_the_ranks_are_those_of_loops_and_are_kept(capsys, split):
    own(split)
    assert score("--images", "a.npy", "--captions", "b.npy", "--out", "r.parquet") == 0
    told, table, expected = (
        capsys.readouterr().out,
        pd.read_parquet("r.parquet"),
        naive_ranks(),
    )
    assert f"{IMAGES} images, {len(OWNER)} captions" in told
    assert ("name no split: all images are scored" in told) == (split is None)
    assert "80/10/10" not in told
    assert list(table) == ["layer", "direction", "query", "cluster", "seed", "rank"]
    for way in ("i2t", "t2i"):
        rows = table[table["direction"] == way]
        assert rows["rank"].tolist() == expected[way]
        recall = 100 * np.mean(np.array(expected[way]) < 1)
        shown = re.search(rf"{way} R@1 +([\d.]+)  \[([\d.]+), ([\d.]+)\]", told)
        value, low, high = map(float, shown.groups())
        assert value == pytest.approx(recall, abs=0.005) and low < value < high
    own_row = next(
        line for line in told.splitlines() if line.strip().startswith("own  ")
    )
    *recalls, rsum, low, high = (float(x) for x in re.findall(r"[\d.]+", own_row))
    cuts = [(way, k) for way in ("i2t", "t2i") for k in (1, 5, 10)]
    exact = [100 * np.mean(np.array(expected[way]) < k) for way, k in cuts]
    assert recalls == pytest.approx(exact, abs=0.05) and rsum == pytest.approx(
        sum(exact), abs=0.06
    )
    ends = wilsons_interval_of_sum(expected, cuts)
    assert (low, high) == pytest.approx(ends, abs=0.06) and low < rsum < high
    captions = table[table["direction"] == "t2i"]
    assert captions["cluster"].tolist() == [f"{number}.jpg" for number in OWNER]
    assert not Path("results").exists() and not Path("data").exists()


def test_tensors_halves_and_repeated_rows_give_the_same(capsys):
    own()
    assert score() == 0
    expected = capsys.readouterr().out
    images, captions = np.load("a.npy"), np.load("b.npy")
    torch.save(torch.from_numpy(images), "a.pt")
    torch.save({"captions": torch.from_numpy(captions)}, "b.pt")
    assert score("--images", "a.pt", "--captions", "b.pt") == 0
    assert capsys.readouterr().out == expected
    np.save("five.npy", images[OWNER])
    assert score("--images", "five.npy", "--captions", "b.npy") == 0
    assert (
        capsys.readouterr().out.replace(
            "five.npy: one row per caption; the equal ones of an image count once\n", ""
        )
        == expected
    )
    for name in ("a", "b"):
        np.save(f"{name}16.npy", np.load(f"{name}.npy").astype(np.float16))
    assert score("--images", "a16.npy", "--captions", "b16.npy") == 0
    assert re.findall(r"R@1 +([\d.]+)", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("lines", "found", "do"),
    [
        (["a A."], "one", "add images"),
        (["a A.", "b"], "no caption", "correct the annotations"),
    ],
)
def test_images_that_cannot_be_ranked_are_refused_by_the_name_of_the_file(
    lines, found, do
):
    images = []
    for line in lines:
        name, *captions = line.split()
        images.append(json.dumps({"image": f"{name}.jpg", "captions": captions}))
    Path("notes.jsonl").write_text("\n".join(images))
    check(refuse("--matrix", "a.npy"), "notes.jsonl", found=found, do=do)


def test_what_cannot_be_scored_is_refused_in_one_line():
    own()
    pair = ("--images", "a.npy", "--captions", "b.npy")
    for words, fields in (
        (("--items", "items", *pair[:2]), ("--items", "alone", "--images")),
        (("--season", "x", *pair), ("--season", "no --annotations")),
        (("--name", "x", "--ranks", "r.csv"), ("--name", "no --annotations")),
        (("--images", "a.npy"), ("score", "--captions", "--images alone")),
        ((*pair, "--out", "r.csv"), ("--out", ".parquet", "r.csv")),
        (("--images", "b.npy", *pair[2:]), ("b.npy", "40 images", "200")),
    ):
        check(refuse(*words), *fields)
    torch.save({"captions": [1, 2]}, "b.pt")  # other objects than tensors
    check(refuse(*pair[:3], "b.pt"), "b.pt", "tensors")
    # larger than what it holds
    torch.save(torch.zeros(1).expand(10**5, 10**4), "huge.pt")
    check(refuse("--images", "huge.pt", *pair[2:]), "huge.pt")
    check(refuse(path="none.json"), "none.json", found="nothing")
    error = refuse(dataset="mscoco", path=karpathy("dataset_coco.json"))
    check(error, "dataset_coco.json", 5000, 40)
    Path("README.md").write_text("another file")
    error = refuse(dataset="mscoco", path="README.md")
    check(error, "README.md", "dataset_coco.json", "README.md")


def judged(share: float) -> None:
    """CxC, of whose queries this share is in the files."""
    count = round(IMAGES / share)
    of_image = {n + 1: [n * EACH + 1] for n in range(count)}
    of_caption = {n * EACH + 1: [n + 1] for n in range(count)}
    Path("cxc_image_to_caption.json").write_text(json.dumps(of_image))
    Path("cxc_caption_to_image.json").write_text(json.dumps(of_caption))


@pytest.mark.parametrize(
    ("share", "is_kept", "is_told"),
    ((1.0, True, False), (0.8, True, True), (0.4, False, True)),
)
def test_a_layer_of_which_few_queries_are_here_is_left_out(
    share, is_kept, is_told, monkeypatch
):
    monkeypatch.setitem(datasets.load("mscoco").IMAGES[True], "test", IMAGES)
    monkeypatch.setattr(datasets.load("mscoco"), "find_spec", lambda name: None)
    path = karpathy("dataset_coco.json")
    data = json.loads(path.read_text())
    for number, image in enumerate(data["images"]):
        image["cocoid"] = number + 1
        for sentence in image["sentences"]:
            sentence["sentid"] += 1
    path.write_text(json.dumps(data))
    judged(share)
    read = annotated("mscoco", path)
    assert ("cxc" in read.card["layers"]) == is_kept == bool(len(read.judged))
    told = [note for note in read.card["notes"] if note.startswith("cxc: ")]
    assert bool(told) == is_told
    if told:
        assert f"{IMAGES} of {round(IMAGES / share)} i2t" in told[0]


def test_ranks_tell_what_they_reach_and_no_more(capsys):
    """A third of the best items was not found among the first seven."""
    own()
    rng, rows = np.random.default_rng(0), []
    for way, ids in (
        ("i2t", [f"{n}.jpg" for n in range(IMAGES)]),
        ("t2i", [f"{n}.jpg#{k}" for n in range(IMAGES) for k in range(EACH)]),
    ):
        found = np.where(rng.random(len(ids)) < 1 / 3, -1, rng.integers(0, 7, len(ids)))
        rows += [(way, query, rank) for query, rank in zip(ids, found, strict=True)]
    table = pd.DataFrame(rows, columns=["direction", "query", "rank"])
    table.to_csv("ranks.csv", index=False)
    assert score("--ranks", "ranks.csv", "--out", "r.parquet") == 0
    told = capsys.readouterr().out
    for way in ("i2t", "t2i"):
        of_way = table[table["direction"] == way]["rank"]
        recall = 100 * ((of_way >= 0) & (of_way < 5)).mean()
        assert (
            f"{way} R@5 {recall:15.2f}" in re.sub(" +", " ", told)
            or f"{recall:.2f}" in told
        )
    cells = told.splitlines()[2].split()  # own, three recalls of each direction, rsum
    assert [cells[n] for n in (0, 3, 6, 7)] == ["own", "-", "-", "-"] and float(
        cells[5]
    ) > 0
    assert told.count("R@10") == 2 and "MRR" not in told and "mAP" not in told
    kept = pd.read_parquet("r.parquet")
    assert kept["rank"].tolist() == table["rank"].tolist()


# What the annotations call images and captions ----------------------------------------


def in_other_order(numbers: range | list[int]) -> list[int]:
    # the same for images and captions would prove nothing
    return np.random.default_rng(3).permutation(numbers).tolist()


def coco(**facts: object) -> Path:
    """COCO's captions: the number of an image is not that in its file name, captions
    lie in another order than their images, and their ids in yet another."""
    numbers = in_other_order(range(IMAGES))
    images = [{"id": numbers[n], "file_name": f"{n}.jpg"} for n in range(IMAGES)]
    ids = in_other_order(range(len(OWNER)))
    annotations = [
        {"id": ids[row], "image_id": numbers[OWNER[row]], "caption": f"text {row}"}
        | facts
        for row in in_other_order(range(len(OWNER)))
    ]
    data = {"images": images, "annotations": annotations}
    Path("captions.json").write_text(json.dumps(data))
    return Path("captions.json")


def shuffled_with_ids(name: str, column: str, ids: list[object]) -> str:
    vectors, order = np.load(name), in_other_order(range(len(ids)))
    table = pd.DataFrame(
        {column: [ids[row] for row in order], "x": list(vectors[order])}
    )
    file = name.replace(".npy", ".parquet")
    table.to_parquet(file)
    return file


def r1(capsys) -> tuple[float, float]:
    """The printed R@1 of both directions."""
    told = capsys.readouterr()
    assert not told.err, told.err
    return tuple(float(value) for value in re.findall(r"R@1 +([\d.]+)", told.out))


def expected_r1() -> tuple[float, float]:
    ranks = naive_ranks()
    return tuple(
        round(100 * np.mean(np.array(ranks[way]) < 1), 2) for way in ("i2t", "t2i")
    )


def test_ids_of_coco_name_images_and_captions(capsys):
    path = coco()
    data = json.loads(path.read_text())
    id_of = {item["caption"]: item["id"] for item in data["annotations"]}
    images = shuffled_with_ids(
        "a.npy", "image_id", [item["id"] for item in data["images"]]
    )
    captions = shuffled_with_ids(
        "b.npy", "caption_id", [id_of[f"text {n}"] for n in range(len(OWNER))]
    )
    assert score("--images", images, "--captions", captions, path=path) == 0
    assert r1(capsys) == pytest.approx(expected_r1(), abs=0.005)


@pytest.mark.parametrize("dataset", ["folder", "flickr8k"])
def test_sentids_of_karpathy_name_captions(capsys, monkeypatch, dataset):
    path = karpathy("dataset_flickr8k.json")
    data = json.loads(path.read_text())
    ids = in_other_order(range(len(OWNER)))
    for number, image in enumerate(data["images"]):
        for k, sentence in enumerate(image["sentences"]):
            sentence |= {"sentid": ids[number * EACH + k], "raw": f"text {number} {k}"}
    path.write_text(json.dumps(data))
    module = datasets.load(dataset)
    monkeypatch.setattr(module, "CARD", replace(module.CARD, expected_images={}))
    captions = shuffled_with_ids("b.npy", "sentid", ids)
    words = ("--images", "a.npy", "--captions", captions)
    assert score(*words, dataset=dataset, path=path) == 0
    assert r1(capsys) == pytest.approx(expected_r1(), abs=0.005)


def test_a_column_of_ids_names_the_caption_of_a_row(capsys):
    names = [f"c{number}" for number in in_other_order(range(len(OWNER)))]
    rows = [f"{OWNER[n]}.jpg,text {n},{names[n]}" for n in range(len(OWNER))]
    Path("notes.csv").write_text("\n".join(["image,caption,caption_id", *rows]))
    captions = shuffled_with_ids("b.npy", "caption_id", names)
    assert score("--images", "a.npy", "--captions", captions, path="notes.csv") == 0
    assert r1(capsys) == pytest.approx(expected_r1(), abs=0.005)


def test_the_names_of_a_corpus_name_images_and_captions(capsys):
    """BEIR's, and the split is that of its judgements: a file of all is named."""
    Path("qrels").mkdir()
    names = [f"q{number}" for number in in_other_order(range(len(OWNER)))]
    rows = [{"_id": f"d{n}", "image": f"{n}.jpg"} for n in range(IMAGES)]
    Path("corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    rows = [{"_id": names[n], "text": f"text {n}"} for n in range(len(OWNER))]
    Path("queries.jsonl").write_text("\n".join(map(json.dumps, rows)))
    rows = [f"d{OWNER[n]}\t{names[n]}\t1" for n in range(len(OWNER))]
    Path("qrels/test.tsv").write_text("\n".join(["corpus-id\tquery-id\tscore", *rows]))
    captions = shuffled_with_ids("b.npy", "caption_id", names)
    images = shuffled_with_ids("a.npy", "image_id", [f"d{n}" for n in range(IMAGES)])
    words = ("--images", images, "--captions", captions)
    for path in ("corpus.jsonl", "queries.jsonl"):
        assert score(*words, path=path) == 0
        assert r1(capsys) == pytest.approx(expected_r1(), abs=0.005)


def test_the_split_of_captions_decides_what_is_scored_and_the_rest_is_told(capsys):
    path = coco(is_rejected=False)
    data = json.loads(path.read_text())
    number_of = {
        int(item["file_name"].split(".")[0]): item["id"] for item in data["images"]
    }
    tested = {number_of[n] for n in range(8)}
    for item in data["annotations"]:
        item["split"] = "test" if item["image_id"] in tested else "train"
    path.write_text(json.dumps(data))
    np.save("few.npy", np.load("a.npy")[:8])
    np.save("fewer.npy", np.load("b.npy")[: 8 * EACH])
    assert score("--images", "few.npy", "--captions", "fewer.npy", path=path) == 0
    told = capsys.readouterr().out
    assert f"8 images, {8 * EACH} captions" in told
    assert "captions.json: not used: annotations.is_rejected." in told.splitlines()
    assert "without ids, rows are taken image by image" in told


def test_one_split_alone_is_scored(capsys):
    own("val")
    assert score() == 0
    told = capsys.readouterr().out
    assert (
        f"{IMAGES} images, {len(OWNER)} captions" in told and "have val alone" in told
    )


def test_a_caption_that_holds_rows_is_refused():
    captions = [f"{number}.jpg,text {number}" for number in range(IMAGES)]
    captions[7], captions[9] = '7.jpg,"text', '9.jpg,text of 20"'
    Path("notes.csv").write_text("\n".join(["image,caption", *captions]))
    check(refuse(path="notes.csv"), "notes.csv:9")


def with_equal_captions(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors of images and captions, and the text of each caption as a number."""
    rng = np.random.default_rng(seed)
    texts_T = rng.normal(size=(12, 64)).astype(np.float32)
    text_C = rng.integers(len(texts_T), size=len(OWNER))
    images = texts_T[text_C[::EACH]] + rng.normal(size=(IMAGES, 64))
    lines = ["image,caption"]
    for owner, text in zip(OWNER, text_C, strict=True):
        lines.append(f"{owner}.jpg,text number {text}")
    Path("equal.csv").write_text("\n".join(lines))
    return images.astype(np.float32), texts_T[text_C], text_C


def recalls_by_layer(capsys, *words: object, path: str = "equal.csv") -> str:
    assert score(*words, path=path) == 0
    return capsys.readouterr().out.split("own: i2t")[0]


@pytest.mark.parametrize("seed", range(4))
def test_equal_captions_tie_wherever_they_stand(seed, capsys):
    images, captions, text_C = with_equal_captions(seed)
    np.save("a.npy", images)
    np.save("b.npy", captions)
    embedded = recalls_by_layer(capsys, "--images", "a.npy", "--captions", "b.npy")
    units = [
        x / np.linalg.norm(x.astype(float), axis=1)[:, None] for x in (images, captions)
    ]
    first = np.unique(text_C, return_index=True)[1][text_C]
    np.save("m.npy", (units[0] @ units[1].T)[:, first].astype(np.float32))
    assert recalls_by_layer(capsys, "--matrix", "m.npy") == embedded
    order = np.random.default_rng(seed).permutation(IMAGES)
    mixed = np.r_[tuple(np.flatnonzero(OWNER == image) for image in order)]
    lines = Path("equal.csv").read_text().split("\n")
    Path("mixed.csv").write_text("\n".join([lines[0], *np.array(lines[1:])[mixed]]))
    np.save("a.npy", images[order])
    np.save("b.npy", captions[mixed])
    assert (
        recalls_by_layer(
            capsys, "--images", "a.npy", "--captions", "b.npy", path="mixed.csv"
        )
        == embedded
    )


def test_different_vectors_of_equal_captions_are_told(capsys):
    images, captions, _ = with_equal_captions(0)
    np.save("a.npy", images)
    np.save("b.npy", captions)
    assert score("--images", "a.npy", "--captions", "b.npy", path="equal.csv") == 0
    assert "word for word" not in capsys.readouterr().out
    rng = np.random.default_rng(0)
    np.save(
        "b.npy", captions + 1e-6 * rng.normal(size=captions.shape).astype(np.float32)
    )
    assert score("--images", "a.npy", "--captions", "b.npy", path="equal.csv") == 0
    assert "rounding, which decides their ties" in capsys.readouterr().out
    np.save("b.npy", rng.permutation(captions))
    assert score("--images", "a.npy", "--captions", "b.npy", path="equal.csv") == 0
    assert "order right" in capsys.readouterr().out


def test_the_items_of_annotations_are_written_in_the_order_of_rows(capsys):
    own()
    np.save("few.npy", np.load("a.npy")[:-1])
    advice = "rematch score --dataset folder --annotations notes.jsonl --items FOLDER"
    assert advice in refuse("--images", "few.npy", "--captions", "b.npy").do
    Path("7.jpg").touch()
    assert main(advice.replace("FOLDER", "todo").split()[1:]) == 0
    images, captions = pd.read_csv("todo/images.csv"), pd.read_csv("todo/captions.csv")
    assert images["image_id"].tolist() == [f"{number}.jpg" for number in range(IMAGES)]
    assert images["path"].dropna().tolist() == [str(Path("7.jpg").absolute())]
    assert captions["image_id"].tolist() == [f"{number}.jpg" for number in OWNER]
    assert score() == 0
    expected = capsys.readouterr().out.partition("own ")[2]
    order = np.random.default_rng(0).permutation(len(OWNER))
    np.savez(
        "b.npz",
        x=np.load("b.npy")[order],
        id=captions["caption_id"].to_numpy(str)[order],
    )
    assert score("--images", "a.npy", "--captions", "b.npz") == 0
    assert capsys.readouterr().out.partition("own ")[2] == expected


def test_nearly_equal_rows_of_an_image_are_told_from_other_rows(capsys):
    own()
    noise = np.random.default_rng(0).normal(size=(len(OWNER), 6)).astype(np.float32)
    np.save("near.npy", np.load("a.npy")[OWNER] + 1e-6 * noise)
    error = refuse("--images", "near.npy", "--captions", "b.npy")
    check(error, "near.npy", do="x[::5]")
    np.save("kept.npy", np.load("near.npy")[::5])
    assert score("--images", "kept.npy", "--captions", "b.npy") == 0
    capsys.readouterr()
    error = refuse("--images", "b.npy", "--captions", "b.npy")
    check(error, "b.npy", do="the images")


def test_a_layer_needs_queries_of_each_direction():
    rows = [("i2t", "a", "x")] + [("t2i", "a", caption) for caption in "uvwx"]
    pairs = pd.DataFrame(rows, columns=["way", "image_id", "caption_id"])
    named = {"i2t": 4, "t2i": 4}
    layer = Layer(name="crowd", rule="r", pairs=pairs, named=named)
    kept, notes = _with_enough_queries([layer])
    assert kept == [] and "1 of 4 i2t, 4 of 4 t2i" in notes[0]

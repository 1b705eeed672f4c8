"""Layers of relevance: pairs that people judged, ranks by them, and what follows."""

import json
import math
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import ir_measures
import numpy as np
import pandas as pd
import pytest
from oracles import ranking
from refusals import refused
from scipy.sparse import csr_array

from benchmark.commands.annotated_split import annotated
from benchmark.commands.external_scores import names_of
from benchmark.contracts import datasets
from benchmark.contracts.datasets import Tables
from benchmark.data.prepared_tables import Prepared, judged_table
from benchmark.data.rank_keys import RankKey
from benchmark.data.results import Ranks
from benchmark.features.embedding_files import Rows, places
from benchmark.scoring import evaluation, metrics
from benchmark.scoring.metrics import ALL_RANKS, METRICS
from benchmark.scoring.ranking import Matrices, ranks_of
from benchmark.scoring.relevance import LayerPairs, Relevance, layers_of

IMAGES, EACH = 30, 3
WAYS = ("i2t", "t2i")


# What follows from pairs --------------------------------------------------------------


def made(seed: int, levels: int) -> tuple[np.ndarray, Relevance, dict[str, LayerPairs]]:
    """Scores (I, C) of `levels` values, `own`, and a layer with random judgements of
    half of the queries of both directions."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(IMAGES), EACH)
    scores = rng.integers(0, levels, (IMAGES, len(owner))).astype(np.float32)
    layer = {}
    for way, own in (("i2t", np.arange(IMAGES) * EACH), ("t2i", owner)):
        asked = np.sort(rng.choice(len(own), len(own) // 2, replace=False))
        said = np.zeros(scores.shape if way == "i2t" else scores.T.shape, np.int8)
        said[asked] = rng.choice([0, 1, -1], said[asked].shape, p=[0.7, 0.1, 0.2])
        said[asked, own[asked]] = 1
        layer[way] = LayerPairs(csr_array(said))
    return scores, Relevance.of(np.arange(IMAGES), owner), layer


def ranks_by_loops(layer: LayerPairs, scores_QG: np.ndarray) -> list[list[int]]:
    found = []
    for query in layer.queries:
        right = {int(item) for at, item in layer.right if at == query}
        found.append(ranking.places(scores_QG[query].tolist(), right))
    return found


@pytest.mark.parametrize("levels", [1, 4, 10**6])
@pytest.mark.parametrize("tile", [(7, 11), (256, 1024)])
def test_ranks_by_a_layer_are_those_of_loops(levels, tile):
    scores, relevance, layer = made(levels, levels)
    tiles = Matrices(tile, i2t=scores)
    found = evaluation.of_retrieval(tiles, relevance, WAYS, layers={"people": layer})
    plain = evaluation.of_retrieval(tiles, relevance, WAYS)
    assert found.metrics == plain.metrics  # those of `own` are untouched
    for way in WAYS:
        ranks = found.scores.ranks[RankKey(way, "people")]
        expected = ranks_by_loops(layer[way], scores if way == "i2t" else scores.T)
        assert ranks.values.tolist() == [rank for of in expected for rank in of]
        assert ranks.counts.tolist() == [len(of) for of in expected]


@pytest.mark.parametrize("levels", [1, 3, 10**6])
def test_the_first_answers_tell_recalls_up_to_10_and_what_was_judged(levels):
    scores, relevance, layer = made(levels + 5, levels)
    found = evaluation.of_retrieval(
        Matrices(i2t=scores), relevance, WAYS, layers={"p": layer}
    )
    for way in WAYS:
        retrieved = found.retrieved[way]
        best = layer[way].first_right(retrieved).best
        whole = found.scores.ranks[RankKey(way, "p")].best
        if levels > 3:  # among equals, those that `own` has right come last
            assert (best == np.minimum(whole, 10)).all()
        said = layer[way].judged(retrieved)
        for place, query in enumerate(layer[way].queries):
            known = layer[way].said.toarray()[query]
            assert said[place].tolist() == [
                known[answer] for answer in retrieved[query]
            ]


def test_of_a_query_whose_right_items_are_elsewhere_nothing_is_said():
    # caption d is right for an image that is not of the split
    rows = [
        ("p", "t2i", "x", "c", True),
        ("p", "t2i", "y", "c", False),
        ("p", "t2i", "z", "d", True),
        ("p", "t2i", "x", "d", False),
    ]
    columns = ["layer", "way", "image_id", "caption_id", "right"]
    test = SimpleNamespace(image_rows=np.arange(2), caption_rows=np.arange(2))
    data = SimpleNamespace(
        images=pd.DataFrame({"image_id": list("xyz")}),
        captions=pd.DataFrame({"caption_id": list("cd")}),
        judged=pd.DataFrame(rows, columns=columns),
    )
    said = layers_of(data, test)["p"]["t2i"].said
    assert said.toarray().tolist() == [[1, -1], [0, 0]]


# Metrics of all relevant items --------------------------------------------------------


def naive_metrics(places: list[int]) -> dict[str, float]:
    right = {place + 1 for place in places}
    count, hits, precisions = len(right), 0, {}
    for position in range(1, max(right) + 1):
        if position in right:
            hits += 1
            precisions[position] = hits / position
    gain = sum(1 / math.log2(position + 1) for position in right if position <= 10)
    ideal = sum(
        1 / math.log2(position + 1) for position in range(1, min(10, count) + 1)
    )
    return {
        "mrr": 1 / min(right),
        "map": sum(precisions.values()) / count,
        "map_r": sum(p for position, p in precisions.items() if position <= count)
        / count,
        "r_precision": sum(position <= count for position in right) / count,
        "ndcg10": gain / ideal,
        "minp": count / max(right),
    }


@pytest.mark.parametrize("seed", range(4))
def test_metrics_of_all_relevant_items_are_those_of_loops(seed):
    rng = np.random.default_rng(seed)
    scores, relevant = (
        rng.integers(0, 6, (20, 90)),
        rng.random((20, 90)) < rng.uniform(0, 0.5),
    )
    relevant[:, 0] = True
    ranks, rows = (
        ranks_of(scores.astype(float), relevant),
        zip(scores, relevant, strict=True),
    )
    expected = [
        naive_metrics(ranking.places(s.tolist(), np.flatnonzero(r))) for s, r in rows
    ]
    found = metrics.rank_metrics("t2i", ranks, ALL_RANKS)
    assert set(found) == {f"t2i_{name}" for name in expected[0]}
    for metric in ALL_RANKS:
        loops = [100 * of[metric.name] for of in expected]
        assert metric.of_queries(ranks) == pytest.approx(loops, abs=1e-9)
        assert found[f"t2i_{metric.name}"] == pytest.approx(np.mean(loops), abs=1e-9)


def test_metrics_of_all_relevant_items_are_those_of_ir_measures():
    rng = np.random.default_rng(0)
    scores, relevant = (
        rng.permutation(40 * 60).reshape(40, 60),
        rng.random((40, 60)) < 0.2,
    )
    relevant[:, 3] = True
    pairs = np.argwhere(relevant)
    qrels = [ir_measures.Qrel(str(q), str(item), 1) for q, item in pairs]
    run = [
        ir_measures.ScoredDoc(str(q), str(item), float(scores[q, item]))
        for q in range(40)
        for item in range(60)
    ]
    found = metrics.rank_metrics(
        "i2t", ranks_of(scores.astype(float), relevant), ALL_RANKS
    )
    named = {"mrr": "RR", "map": "AP", "r_precision": "Rprec", "ndcg10": "nDCG@10"}
    asked = {name: ir_measures.parse_measure(of) for name, of in named.items()}
    theirs = ir_measures.calc_aggregate(asked.values(), qrels, run)
    for name, measure in asked.items():
        assert found[f"i2t_{name}"] == pytest.approx(100 * theirs[measure], abs=1e-9)


def test_ranks_of_the_best_item_alone_tell_its_reciprocal_and_records_nothing_of_the_others():
    best = Ranks.of_best(np.array([0, 3]))
    assert set(metrics.rank_metrics("i2t", best, ALL_RANKS)) == {"i2t_mrr"}
    assert METRICS["i2t_mrr"].compute(best) == pytest.approx(62.5)
    kept = metrics.retrieval_metrics({"i2t": best, "t2i": best})
    assert not {f"{way}_{m.name}" for way in WAYS for m in ALL_RANKS} & set(kept)


# Flickr8k -----------------------------------------------------------------------------

EXPERTS = [
    ("a.jpg", "b.jpg#2", 3, 3, 3),
    ("a.jpg", "c.jpg#2", 2, 3, 3),
    ("b.jpg", "b.jpg#2", 1, 1, 1),
]
CROWD = [("c.jpg", "b.jpg#2", 0.66, 2, 1), ("c.jpg", "a.jpg#2", 0.5, 1, 1)]
FILES = {"ExpertAnnotations.txt": EXPERTS, "CrowdFlowerAnnotations.txt": CROWD}


def flickr_tables() -> Tables:
    """Three test images, and one of training that nobody judged."""
    names = ["a", "b", "c", "d"]
    images = pd.DataFrame(
        {"image_id": names, "file": [f"{n}.jpg" for n in names], "group": names}
    )
    images["split"] = ["test", "test", "test", "train"]
    rows = [(f"{n}.jpg#{k}", n, "x") for n in names for k in range(5)]
    return Tables(
        images=images,
        captions=pd.DataFrame(rows, columns=["caption_id", "image_id", "text"]),
    )


def as_text(rows: list[tuple]) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def place(raw: Path, where: str) -> None:
    """The two files, in one of the places where they are found."""
    if where == "zip":
        with ZipFile(raw / "Flickr8k_text.zip", "w") as archive:
            for name, rows in FILES.items():
                archive.writestr(name, as_text(rows))
        return
    (raw / where).mkdir(exist_ok=True)
    for name, rows in FILES.items():
        (raw / where / name).write_text(as_text(rows))


def read(raw: Path) -> dict[str, dict[tuple[str, str], bool]]:
    layers = datasets.load("flickr8k").layers(raw, flickr_tables())
    return {
        of.name: {(p.image_id, p.caption_id): p.right for p in of.pairs.itertuples()}
        for of in layers
    }


@pytest.mark.parametrize("where", ["zip", ".", "judgements"])
def test_experts_and_crowd_add_to_own_wherever_their_files_are(tmp_path, where):
    place(tmp_path, where)
    own = {("a", "a.jpg#2"): True, ("b", "b.jpg#2"): True, ("c", "c.jpg#2"): True}
    said = {("a", "b.jpg#2"): True, ("a", "c.jpg#2"): False}
    crowd = {("c", "b.jpg#2"): True, ("c", "a.jpg#2"): False}
    found = read(tmp_path)
    (tmp_path / "without").mkdir()
    assert read(tmp_path / "without") == {}  # own alone
    # A caption's own image is right, whatever experts say of it; all judged captions
    # are asked.
    assert found == {
        "experts": own | said,
        "crowd": own | crowd,
        "both": own | said | crowd,
    }


@pytest.mark.parametrize(
    "line", ["a.jpg\tb.jpg#2\t3\t3", "d.jpg\tb.jpg#2\t3\t3\t3", "a.jpg\tb.jpg#9\t3\t3\t3",
             "a.jpg\tb.jpg#2\t3\tnan\t3", "a.jpg b.jpg#2 3 3 3", "a.jpg\tb.jpg#2\t0\t0\t0"],
)  # fmt: skip
def test_a_line_that_is_no_judgement_is_named(tmp_path, line):
    path = tmp_path / "ExpertAnnotations.txt"
    path.write_text(as_text(EXPERTS[:1]) + line + "\n")
    with refused("ExpertAnnotations.txt:2", "test image, a test caption", line[:5]):
        read(tmp_path)
    path.unlink()
    (tmp_path / "CrowdFlowerAnnotations.txt").write_text("a.jpg\tb.jpg#2\t0.5\t-1\t3\n")
    with refused("CrowdFlowerAnnotations.txt:1"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["own", "a b", "x@y", "../x"])
def test_a_layer_has_a_name_of_its_own(name):
    pairs = pd.DataFrame({"way": ["t2i"], "image_id": ["a"], "caption_id": ["b"]})
    pairs = pairs.assign(score=1.0, right=True)
    with refused("layer", "a name", repr(name)):
        judged_table([datasets.Layer(name=name, rule="", pairs=pairs)])
    with refused(expected="pair once", found="'b' twice"):
        judged_table(
            [datasets.Layer(name="x", rule="", pairs=pd.concat([pairs, pairs]))]
        )
    layer = datasets.Layer(name="x", rule="", pairs=pairs)
    with refused("layer", "each once", "'x'"):
        judged_table([layer, layer])


# MSCOCO: CxC and ECCV Caption ---------------------------------------------------------

needs_files = pytest.mark.skipif(
    find_spec("eccv_caption") is None, reason="needs eccv-caption"
)


@pytest.fixture(scope="module")
def coco(tmp_path_factory) -> tuple[Prepared, object]:
    """The 5,000 test images with their real ids, and the reference implementation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it would rather have another reader of JSON
        from eccv_caption import Metrics

    reference, raw = Metrics(), tmp_path_factory.mktemp("coco")
    images: dict[int, list[int]] = {}
    for caption in reference.coco_ids.tolist():
        images.setdefault(reference.coco_gts["t2i"][caption][0], []).append(caption)
    listed = [
        {"filename": f"{image}.jpg", "split": "test", "cocoid": image}
        | {"sentences": [{"raw": "x", "sentid": caption} for caption in captions]}
        for image, captions in images.items()
    ]
    (raw / "dataset_coco.json").write_text(json.dumps({"images": listed}))
    module = datasets.load("mscoco")
    options = module.Options(with_pictures=False)
    tables = module.read(raw, options)
    layers = module.layers(raw, tables, options)
    data = Prepared(
        images=tables.images,
        captions=tables.captions.assign(split="test"),
        regions=tables.regions.assign(phrase_id=""),
        card={"ways": WAYS, "folds": 5},
        folder=raw,
        judged=judged_table(layers),
    )
    return data, reference


@needs_files
def test_the_layers_have_the_published_queries_and_pairs(coco):
    """The package's text swaps the queries of ECCV Caption: 1,261 are images, 1,332
    captions. Two of its positives are not among the 25,000 captions; 28 captions have
    no positive in CxC."""
    data, reference = coco
    layers = layers_of(data, data.split("test"))
    sizes = {
        (n, way): len(of.queries)
        for n, both in layers.items()
        for way, of in both.items()
    }
    assert sizes == {
        ("cxc", "i2t"): 5000,
        ("cxc", "t2i"): 25000 - 28,
        ("eccv", "i2t"): 1261,
        ("eccv", "t2i"): 1332,
    }
    assert len(layers["cxc"]["t2i"].right) == len(layers["cxc"]["i2t"].right) == 35585
    assert len(layers["eccv"]["t2i"].right) == 11279
    listed = sum(map(len, reference.eccv_gts["i2t"].values()))
    assert listed - len(layers["eccv"]["i2t"].right) == 2
    # so deep have ranks to be kept for mAP@R
    assert layers["eccv"]["i2t"].counts.max() == 48
    judged, split = layers["cxc"]["t2i"], data.split("test")
    kept = split.image_of_caption[judged.right[:, 0]] == judged.right[:, 1]
    assert 25000 - kept.sum() == 29  # original pairs that are not in CxC


@needs_files
def test_captions_of_coco_may_be_named_by_their_annotation_ids(coco):
    data, reference = coco
    read = annotated("mscoco", data.folder / "dataset_coco.json")
    captions = read.captions["caption_id"].tolist()
    names = {name: at for at, name in enumerate(map(str, reference.coco_ids))}
    rows = Rows(
        path=Path("b.npz"), values=np.zeros((25000, 2)), ids={"sentid": [*names][::-1]}
    )
    at = places(rows, names_of(read)["captions"], "captions")
    assert at.tolist() == [24999 - names[str(s)] for s in read.captions["sentid"]]
    assert len(captions) == 25000


def test_half_of_a_layer_and_other_things_than_ids_are_refused(tmp_path):
    module = datasets.load("mscoco")
    captions = [{"raw": "x", "sentid": 10 + k} for k in range(5)]
    listed = [
        {"filename": "1.jpg", "split": "test", "cocoid": 1, "sentences": captions}
    ]
    (tmp_path / "dataset_coco.json").write_text(json.dumps({"images": listed}))
    options = module.Options(with_pictures=False)
    tables = module.read(tmp_path, options)
    first, second = (tmp_path / f"cxc_{what}.json" for what in module.JUDGED.values())
    first.write_text('{"1": [10, 11, 99]}')
    with refused("cxc_caption_to_image.json", "both files"):
        module.layers(tmp_path, tables, options)
    second.write_text('{"10": [1], "11": [1, 7]}')
    layer = next(
        of for of in module.layers(tmp_path, tables, options) if of.name == "cxc"
    )
    pairs = sorted(
        layer.pairs[["way", "image_id", "caption_id"]].itertuples(
            index=False, name=None
        )
    )
    assert pairs == [(way, "1", f"1#{k}") for way in ("i2t", "t2i") for k in (0, 1)]
    for wrong in ('{"01": [10]}', '{"1": ["10"]}', "[1]", '{"1": {"a": 1}}', "no json"):
        first.write_text(wrong)
        with refused("cxc_image_to_caption.json"):
            module.layers(tmp_path, tables, options)
    first.write_bytes(b"\xff\xfe{")
    with refused("cxc_image_to_caption.json"):
        module.layers(tmp_path, tables, options)


def test_without_ids_of_captions_layers_of_an_installed_package_are_left_out(
    tmp_path, monkeypatch, capsys
):
    module, raw = datasets.load("mscoco"), tmp_path / "raw"
    raw.mkdir()
    listed = [
        {"filename": "1.jpg", "split": "test", "cocoid": 1, "sentences": [{"raw": "x"}]}
    ]
    (raw / "dataset_coco.json").write_text(json.dumps({"images": listed}))
    package = SimpleNamespace(submodule_search_locations=[str(tmp_path / "package")])
    monkeypatch.setattr(module, "find_spec", lambda name: package)
    options = module.Options(with_pictures=False)
    tables = module.read(raw, options)
    assert module.layers(raw, tables, options) == []
    for folder in (tmp_path / "package/data", raw):
        folder.mkdir(parents=True, exist_ok=True)
        assert capsys.readouterr().err == ""
        for what in module.JUDGED.values():
            (folder / f"cxc_{what}.json").write_text('{"1": [1]}')
        if folder != raw:
            assert module.layers(raw, tables, options) == []
            said = capsys.readouterr().err
            assert said.startswith("rematch: dataset_coco.json: sentid: expected ")
            assert said.endswith("left out\n") and said.count("\n") == 1
    with refused("dataset_coco.json: sentid", "id of each caption", "none"):
        module.layers(raw, tables, options)


def best_first(scores_QG: np.ndarray) -> np.ndarray:
    """The first 50 items of each query, (Q, 50), where no scores are equal."""
    best_QK = np.argpartition(-scores_QG, 50, axis=1)[:, :50]
    order_QK = np.take_along_axis(-scores_QG, best_QK, axis=1).argsort(axis=1)
    return np.take_along_axis(best_QK, order_QK, axis=1)


@needs_files
@pytest.mark.slow
def test_recalls_and_mean_precisions_are_those_of_the_reference(coco):
    data, reference = coco
    split, rng = data.split("test"), np.random.default_rng(0)
    owner = split.image_of_caption
    scores = rng.random((5000, 25000))
    scores[owner, np.arange(25000)] += rng.random(25000)
    relevance = Relevance.of(split.group_of_image, owner, 5)
    found = evaluation.of_retrieval(
        Matrices(i2t=scores), relevance, WAYS, layers=layers_of(data, split)
    )
    names = [int(name) for name in data.images["image_id"]]
    captions = reference.coco_ids
    in_gallery = set(captions.tolist())
    # The reference reads no further than the 48 positives of a query.
    first = {
        "i2t": (names, captions[best_first(scores)]),
        "t2i": (captions.tolist(), np.array(names)[best_first(scores.T)]),
    }
    theirs = {
        way: dict(zip(queries, items.tolist(), strict=True))
        for way, (queries, items) in first.items()
    }
    for way in WAYS:
        for k in (1, 5, 10):
            whole = reference.coco_5k_recalls(theirs, "all", k)[way]
            assert found.metrics[f"{way}_r{k}"] == pytest.approx(100 * whole, abs=1e-9)
            judged = reference.cxc_recalls(theirs, "all", k)[way]
            ours = metrics.rank_metrics(way, found.scores.ranks[RankKey(way, "cxc")])
            assert ours[f"{way}_r{k}"] == pytest.approx(100 * judged, abs=1e-9)
        # The reference counts positives that no ranking can hold among the R of
        # R-precision.
        truth = {
            query: [item for item in items if way == "t2i" or item in in_gallery]
            for query, items in reference.eccv_gts[way].items()
        }
        from eccv_caption._metrics import compute_eccv_metrics

        judged = compute_eccv_metrics(theirs[way], truth)
        ranks = found.scores.ranks[RankKey(way, "eccv")]
        ours = metrics.rank_metrics(way, ranks, (*metrics.RANK_METRICS, *ALL_RANKS))
        for name, of in (
            ("map_r", "map_at_r"),
            ("r_precision", "rprecision"),
            ("r1", "r1"),
        ):
            assert ours[f"{way}_{name}"] == pytest.approx(
                100 * judged[f"eccv_{of}"], abs=1e-9
            )
    # One fold of 1K: the reference takes minutes for all five.
    part = slice(0, 1000), slice(0, 5000)
    alone = Relevance.of(split.group_of_image[part[0]], owner[part[1]])
    fold = evaluation.of_retrieval(Matrices(i2t=scores[part]), alone, WAYS)
    for name in ("i2t_r1", "i2t_r5", "t2i_r1", "t2i_r10"):
        assert found.metrics["fold_values"][name][0] == pytest.approx(
            fold.metrics[name], abs=1e-9
        )

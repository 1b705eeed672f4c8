"""The report: what its pages show, what it refuses, and that it gives the same bytes twice."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from functools import cache
from itertools import takewhile
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import ir_measures
import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from markdown_it import MarkdownIt
from matplotlib.figure import Figure
from PIL import Image

import benchmark.papers.printed_tables
from benchmark.analysis import boards, claims
from benchmark.core.command_line import run_stage
from benchmark.core.errors import UserError
from benchmark.core.files import write_json
from benchmark.core.machine import provenance
from benchmark.core.provenance import Provenance, write_provenance
from benchmark.core.records import Record, write_record
from benchmark.data import prepared_tables
from benchmark.data.raw_files import raw_dataset
from benchmark.data.vocabularies import tokenise
from benchmark.papers.fidelity_notes import Entry
from benchmark.papers.printed_tables import METRICS, About, Claim, Paper, Row, Table
from benchmark.protocol import overlap, rules
from benchmark.report import __main__ as report
from benchmark.report.figures import distributions
from benchmark.report.markdown import code, escaped, picture, table
from benchmark.report.pages import illustrations, season_pages
from benchmark.report.pages.explanations import explanations
from benchmark.report.pages.gallery import chosen
from benchmark.report.pages.illustrations import Picture
from benchmark.report.pages.result_tables import spread
from benchmark.season.parameter_files import write_params
from benchmark.season.parameters import Cell, DatasetSettings, Fusion, Params
from benchmark.season.presets import Fuse, presets
from benchmark.season.resolving import resolve
from benchmark.season.season_files import Season

FOLDER = Path("reports/try")
README = FOLDER / "README.md"
IMAGES, CAPTIONS = 12, 24
KINDS = ("png", "svg")
GRID = 4  # cells of the pictures that words look at
HOSTILE = "a | b <script>alert(1)</script> ](http://evil.example) `typed` **fat**\n\n# top"
MEMBERS = ("scan_t2i_avg", "scan_i2t_lse")
FUSION = "scan_t2i_avg_i2t_lse"
PRESETS = ("two_branch_bidirectional", *MEMBERS, FUSION)
LOSSES = ("dual_path_rank_1", "dual_path_instance_1", "dual_path_full_2")
ILLUSTRATED = (
    *PRESETS,
    *LOSSES,
    "scan_i2t_avg",
    "scan_12_regions",
    "dualmatch",
    "cyclematch",
    "cyclematch_adaptive",
)
DATASETS = ("gated", "open")
PAPERS = Path(benchmark.papers.printed_tables.__file__).parent
RECALLS = [f"{way}_r{k}" for way in ("i2t", "t2i") for k in (1, 5, 10)]
OF_CLAIMS = illustrations.of_claims  # tests put nothing in its place
PLUS_MINUS = "\N{PLUS-MINUS SIGN}\N{NO-BREAK SPACE}"


@cache
def season(seeds: tuple[int, ...] = (0, 1), played: tuple[str, ...] = PRESETS) -> Params:
    """Both datasets, with these seeds and presets."""
    asked = Season(
        title="Try | it" if played == PRESETS else HOSTILE,
        datasets={dataset: DatasetSettings(reader="folder") for dataset in DATASETS},
        presets=list(played),
        seeds=list(seeds),
    )
    return resolve("try", asked)


def cells(params: Params) -> list[Cell | Fusion]:
    return [*params.cells.values(), *params.fusions.values()]


def prepare(dataset: str, **facts: object) -> None:
    """A folder of pictures and its prepared tables; `gated` may not be published."""
    folder, raw = Path("data/prepared") / dataset, Path("data/raw") / dataset
    folder.mkdir(parents=True)
    raw.mkdir(parents=True)
    names = [f"{number}.png" for number in range(IMAGES)]
    for number, name in enumerate(names):
        Image.new("RGB", (200, 100 + number), (20 * number, 90, 90)).save(raw / name)
    write_json(raw / "captions.json", [])
    owners = np.repeat(np.arange(IMAGES), CAPTIONS // IMAGES)
    images = pd.DataFrame({"image_id": names, "file": names, "split": "test", "group": names})
    captions = {
        "caption_id": [str(number) for number in range(CAPTIONS)],
        "image_id": [names[owner] for owner in owners],
        "text": texts_of(dataset),
        "split": "test",
    }
    images.to_parquet(folder / "images.parquet")
    pd.DataFrame(captions).to_parquet(folder / "captions.parquet")
    pd.DataFrame({"image_id": []}).to_parquet(folder / "regions.parquet")
    card = {
        "title": f"Dataset {dataset}",
        "reader": dataset,
        "source": "Doe_et_al <2020>",
        "licence": "none",
        "split": "made",
        "manifest": "m",
        "may_publish": dataset == "open",
        "notes": ["A note."],
        "leakage": {"notes": ["0 pictures leak."]},
        "counts": {"test": {"images": IMAGES, "captions": CAPTIONS}},
    }
    write_json(folder / "card.json", card | facts)


def texts_of(dataset: str) -> list[str]:
    texts = [f"{dataset} text {number}" for number in range(CAPTIONS)]
    texts[7] = f"{dataset} text 7 {HOSTILE}"
    return texts


def record(cell: Cell | Fusion, metrics: dict, **changes: object) -> Record:
    facts = {
        "protocol_version": rules.VERSION,
        "season": "try",
        "dataset": cell.dataset,
        "split": "made/test",
        "images": IMAGES,
        "captions": CAPTIONS,
        "manifest_sha256": "m",
        "preset": cell.preset,
        "method": presets_once()[cell.preset][0],
        "family": "paper",
        "seed": cell.seed,
        "options": {"epochs": 3},
        "scaled": ["epochs"],
        "image_features": {"encoder": "cnn", "weights": {"file": "w_1.pt", "sha256": "ab" * 32}},
        "text_features": {"vocabulary": 9},
        "deviations": ["image features: cnn"],
        "parameters": 1_500_000,
        "selected_epoch": None if isinstance(cell, Fusion) else 2,
        "status": "ok",
        "metrics": metrics,
    }
    return Record(**(facts | changes))


@cache
def presets_once() -> dict:
    return presets()


def play(
    cell: Cell | Fusion,
    quality: float,
    noise: float = 0.2,
    machine: str = "x86_64, 2 cores, Linux",
    **changes: object,
) -> None:
    """Everything a cell leaves behind, made from scores that are better for more `quality`.

    Without noise a quality of 1 hits with every query, and one of -1 with none.
    """
    folder = Path(cell.folder)
    rng = np.random.default_rng([cell.seed, len(cell.preset)])
    relevant = rules.relevance(np.arange(IMAGES), np.repeat(np.arange(IMAGES), 2))
    scores = np.clip(rng.normal(0, noise, relevant.shape) + quality * relevant, -1, 1)
    both = {"i2t": scores, "t2i": scores.T}
    ranks = rules.retrieval_ranks(both, relevant)
    metrics = rules.retrieval_metrics(ranks) | rules.tie_gap(both, relevant, ranks)
    metrics |= rules.overlap_metrics(scores[relevant], scores[~relevant])
    replicates = rng.normal(metrics["overlap_s"], 0.01, overlap.RESAMPLES)
    metrics |= rules.overlap_interval(metrics["overlap_s"], replicates)
    write_record(folder, record(cell, metrics, **changes))
    samples = {"matched_sample": scores[relevant], "unmatched_sample": scores[~relevant]}
    np.savez(folder / "scores/similarities.npz", **samples)
    retrieved = {
        "i2t": [np.lexsort(keys)[:10] for keys in zip(relevant, -scores, strict=True)],
        "t2i": [np.lexsort(keys)[:10] for keys in zip(relevant.T, -scores.T, strict=True)],
    }
    np.savez(folder / "scores/retrieved.npz", **retrieved)
    kept = {"similarity": scores[:, ::2], "overlap_replicates": replicates}
    np.savez(folder / "scores/samples.npz", **kept, **of_model(cell, rng))
    write_ranks(folder, ranks)
    scoring = costs(machine, per_image=1e-3, per_caption=2e-3, per_pair=3e-6)
    write_provenance(folder / "scores/cost.json", scoring)
    if isinstance(cell, Cell):
        write_provenance(folder / "training/cost.json", costs(machine, training=10.0 + cell.seed))
        history = {"epoch": [1, 2, 3], "loss": [3.0, 2.0, 1.5], "val_rsum": [90.0, 99.0, 98.0]}
        pd.DataFrame(history).to_csv(folder / "training/history.csv", index=False)


def write_ranks(folder: Path, ranks: dict[str, np.ndarray]) -> None:
    captions = [str(number) for number in range(CAPTIONS)]
    images = [f"{number}.png" for number in range(IMAGES)]
    queries = {"i2t": images, "t2i": captions, "s2s": captions}
    frames = [
        pd.DataFrame({"direction": way, "query": queries[way], "rank": found})
        for way, found in ranks.items()
    ]
    none = pd.DataFrame({"direction": [], "query": [], "rank": []})
    pd.concat(frames or [none]).to_parquet(folder / "scores/ranks.parquet", index=False)


def of_model(cell: Cell | Fusion, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """What benchmark.evaluate.figure_samples keeps of a cell beyond its scores."""
    if isinstance(cell, Fusion):
        return of_fusion(len(cell.members), rng) if cell.how == "adaptive" else {}
    found = {"correlation_before": np.eye(IMAGES), "correlation_after": np.eye(IMAGES)}
    if cell.method == "scan":
        return found | of_words(cell.dataset, rng)
    spaces = ("visual", "latent") if cell.method == "cyclematch" else ("joint",)
    return found | {f"tsne_{space}": rng.normal(size=(2 * IMAGES, 2)) for space in spaces}


def of_fusion(members: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    found = {}
    for way, queries in (("i2t", IMAGES), ("t2i", CAPTIONS)):
        found[f"weights_{way}"] = rng.uniform(size=(members, queries))
        found[f"curves_{way}"] = -np.sort(-rng.uniform(size=(members, 3, 200)))
        found[f"curve_queries_{way}"] = np.array([0, 5, 11])
    return found


def of_words(dataset: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Of captions 7, which is hostile, and 8."""
    rows = np.array([7, 8])
    counts = [len(tokenise(texts_of(dataset)[row])) for row in rows]
    drops = np.full((2, max(counts)), np.nan)
    attention = np.full((2, max(counts), GRID), np.nan)
    for row, count in enumerate(counts):
        drops[row, :count] = rng.normal(size=count)
        attention[row, :count] = rng.dirichlet(np.ones(GRID), count)
    return {
        "words_captions": rows,
        "words_drop": drops,
        "attention_captions": rows,
        "attention": attention,
    }


def costs(machine: str, **seconds: float) -> Provenance:
    return Provenance(
        git_commit="0123456789ab",
        packages={"torch": "2"},
        machine=machine,
        device="cpu",
        threads=2,
        seconds=seconds,
        peak_memory_mib=512.0,
        peak_device_memory_mib=None,
    )


def lose(dataset: str, preset: str, seed: int, reason: str, status: str = "failed") -> None:
    """The cell failed in its training, or there was none: empty arrays and no epoch."""
    cell = next(
        one
        for one in cells(season(played=ILLUSTRATED))
        if (one.dataset, one.preset, one.seed) == (dataset, preset, seed)
    )
    folder = Path(cell.folder)
    facts = {"status": status, "reason": reason, "selected_epoch": None}
    write_record(folder, record(cell, {}, **facts))
    for name in ("similarities", "retrieved", "samples"):
        np.savez(folder / f"{name}.npz")
    write_ranks(folder, {})
    (folder / "training/history.csv").write_text("epoch\n")


def amend(preset: str, seed: int, dataset: str = "open", /, **changes: object) -> None:
    """Change fields of a record."""
    path = Path(f"results/try/{dataset}/{preset}/{seed}/record.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def amend_metrics(preset: str, seed: int, **metrics: float) -> None:
    path = Path(f"results/try/open/{preset}/{seed}/record.json")
    amend(preset, seed, metrics=json.loads(path.read_text())["metrics"] | metrics)


@pytest.fixture
def played(tmp_path, monkeypatch, made) -> Params:
    """A season with every record, in a folder of its own; the report is made without its figures,
    which take most of the time."""
    monkeypatch.chdir(shutil.copytree(made, tmp_path / "work"))
    undrawn(monkeypatch)
    return season()


def undrawn(monkeypatch) -> None:
    for name in ("of_dataset", "of_localisation", "of_paper", "of_claims"):
        monkeypatch.setattr(illustrations, name, lambda *_: [])
    for name in ("explanations", "phrases"):
        monkeypatch.setattr(season_pages, name, lambda *_: [])


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The folder that `played` copies."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        params = season()
        write_params(params)
        for dataset in DATASETS:
            prepare(dataset)
        for one in cells(params):
            play(one, quality_of(one.preset))
    return folder


def quality_of(preset: str) -> float:
    return {"two_branch_bidirectional": 0.3, FUSION: 0.8}.get(preset, 0.5)


@pytest.fixture(scope="module")
def drawn_once(tmp_path_factory) -> Path:
    """Where a season was reported with all kinds of figures, and all that others write is hostile.
    One preset was never trained, one failed with one seed, one is not applicable."""
    folder = tmp_path_factory.mktemp("drawn")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        params = season(played=ILLUSTRATED)
        write_params(params)
        for dataset in DATASETS:
            facts = dict.fromkeys(("source", "licence"), HOSTILE)
            facts |= {"notes": [HOSTILE], "leakage": {"notes": [HOSTILE]}}
            prepare(dataset, title=f"Dataset {dataset} {HOSTILE}", **facts)
        for one in cells(params):
            play(one, quality_of(one.preset), machine=HOSTILE, **hostile_facts())
        for dataset in DATASETS:
            lose(dataset, "two_branch_bidirectional", 1, HOSTILE)
            for seed in (0, 1):
                lose(dataset, "dual_path_full_2", seed, HOSTILE, status="not_applicable")
                stop_at_once(dataset, "scan_12_regions", seed)
        report.write_report(params)
    return folder


def hostile_facts() -> dict:
    weights = {"file": HOSTILE, "sha256": HOSTILE}
    return {
        "deviations": [HOSTILE],
        "image_features": {"encoder": HOSTILE, "weights": weights},
        "text_features": {"encoder": HOSTILE, "vectors": HOSTILE},
        "options": {"epochs": HOSTILE},
    }


def stop_at_once(dataset: str, preset: str, seed: int) -> None:
    """Another number of regions for the same weights: nothing was trained, all was scored."""
    (Path(f"results/try/{dataset}/{preset}/{seed}") / "training/history.csv").write_text("epoch\n")
    amend(preset, seed, dataset, selected_epoch=None)


@pytest.fixture
def drawn(drawn_once, monkeypatch) -> Params:
    """The folder of `drawn_once`: to read, not to change."""
    monkeypatch.chdir(drawn_once)
    return season(played=ILLUSTRATED)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# What is read off a page, by a parser of Markdown that is not ours.


class Shown(NamedTuple):
    """A table of a page as plain text, the heading and the paragraph that it stands under, and
    what is told below it of the numbers in its column `remark`."""

    heading: str
    lead: str
    heads: list[str]
    rows: list[list[str]]
    remarks: list[str]

    def records(self) -> list[dict[str, str]]:
        return [dict(zip(self.heads, row, strict=True)) for row in self.rows]

    def row(self, start: str) -> dict[str, str]:
        """The first row whose first cell begins with `start`."""
        return next(row for row in self.records() if row[self.heads[0]].startswith(start))


def parsed(text: str) -> list:
    return MarkdownIt("commonmark").enable("table").parse(text)


def plain(token) -> str:
    """What a reader sees of a line."""
    parts = {"text": str, "code_inline": str, "softbreak": lambda _: " "}
    return "".join(parts.get(t.type, lambda _: "")(t.content) for t in token.children)


def shown_tables(text: str) -> list[Shown]:
    found, heading, lead, is_told = [], "", "", False
    tokens = parsed(text)
    for opening, token in zip(tokens, tokens[1:], strict=False):
        if opening.type == "heading_open":
            heading, lead, is_told = plain(token), "", False
        elif opening.type == "table_open":
            found.append(Shown(heading, lead, [], [], []))
        elif opening.type == "table_close":
            is_told = token.type == "ordered_list_open"
        elif opening.type == "ordered_list_close":
            is_told = False
        elif opening.type == "paragraph_open" and is_told:
            found[-1].remarks.append(plain(token))
        elif opening.type == "paragraph_open":
            lead = plain(token)
        elif opening.type == "tr_open":
            found[-1].rows.append([])
        elif opening.type == "th_open":
            found[-1].heads.append(plain(token))
        elif opening.type == "td_open":
            found[-1].rows[-1].append(plain(token))
    return [one._replace(rows=told(one)) for one in found]


def told(table: Shown) -> list[list[str]]:
    """Its rows, less that of the heads, with remarks in the place of their numbers."""
    rows = table.rows[1:]
    if table.heads[-1] != "remark":
        return rows
    assert {row[-1] for row in rows} - {""} == {str(n + 1) for n in range(len(table.remarks))}
    return [[*row[:-1], table.remarks[int(row[-1]) - 1] if row[-1] else ""] for row in rows]


def shown_table(text: str, head: str) -> Shown:
    """The first table that has a column `head`."""
    return next(one for one in shown_tables(text) if head in one.heads)


def page(dataset: str) -> str:
    return (FOLDER / f"datasets/{dataset}.md").read_text()


def on_readme(dataset: str) -> str:
    """What README.md says of a dataset."""
    parts = re.split(r"^(?=## )", README.read_text(), flags=re.MULTILINE)
    return next(part for part in parts if part.startswith(f"## Dataset {dataset}"))


def raw(start: str, head: str, text: str) -> str:
    """The cell as Markdown in column `head` of the first row that begins with `start`, in the
    first table that has both."""
    heads = []
    for line in text.splitlines():
        parts = [part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1]]
        if line.startswith("| ") and not heads:
            heads = [part.replace("\\", "") for part in parts]
        elif not line.startswith("|"):
            heads = []
        if head in heads and line.startswith(f"| {start}"):
            return parts[heads.index(head)]
    raise AssertionError(f"no row {start!r} with a column {head!r}")


def links(path: Path) -> list[str]:
    """Targets of all links and pictures of a page."""
    found = []
    for token in parsed(path.read_text()):
        for child in token.children or ():
            found += [child.attrs[name] for name in ("href", "src") if name in child.attrs]
            found += [inner.attrs["src"] for inner in child.children or () if "src" in inner.attrs]
    return found


def markdown_pages() -> list[Path]:
    return sorted(FOLDER.rglob("*.md"))


def asked(*arguments: str) -> int:
    """Status of `python -m benchmark report ...`."""
    return run_stage("report", report.configure, report.main, arguments)


def test_another_process_writes_the_same_bytes(drawn, tmp_path, monkeypatch):
    first = contents(FOLDER)
    monkeypatch.chdir(shutil.copytree(".", tmp_path / "work"))
    shutil.rmtree(FOLDER)
    root = Path(report.__file__).parent.parent
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-m", "benchmark.report", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert contents(FOLDER) == first
    assert json.loads(done.stdout) == json.loads((FOLDER / "metrics.json").read_text())
    names = {str(Path(name).relative_to(FOLDER)) for name in first}
    assert {"README.md", "claims.md", "fidelity.md", "metrics.json", "local/gated.md"} <= names
    assert {"plots/training.csv", "plots/leaderboard.csv", "papers/scan.md"} <= names
    for dataset in DATASETS:
        for kind in ("similarities", "training", "cost"):
            for suffix in KINDS:
                assert f"figures/{dataset}-{kind}.{suffix}" in names


def test_every_kind_of_figure_is_drawn(drawn):
    figures = {path.name for path in (FOLDER / "figures").iterdir()}
    of_papers = [
        "cyclematch-claims",
        "cyclematch-curves-cyclematch_adaptive",
        "cyclematch-similarity",
        "cyclematch-spaces",
        "cyclematch-weights-cyclematch_adaptive",
        "instance_loss-claims",
        "instance_loss-correlations-dual_path_instance_1",
        "instance_loss-correlations-dual_path_rank_1",
        "instance_loss-losses",
        "scan-claims",
        "scan-regions",
    ]
    everywhere = ["claims", "cost", "overlaps", "similarities", "training", *of_papers]
    assert figures == {
        "gallery",
        *(f"{data}-{name}.{kind}" for data in DATASETS for name in everywhere for kind in KINDS),
        *explanations_of("open"),
    }
    local = {path.name for path in (FOLDER / "local/gated").glob("gated-*")}
    assert local == set(explanations_of("gated"))


def explanations_of(dataset: str) -> list[str]:
    """Attention is of pictures, which no SVG makes smaller or sharper."""
    names = ["words.png", "words.svg", "attention-1.png", "attention-2.png"]
    return [f"{dataset}-{name}" for name in names]


def test_a_training_of_no_epochs_has_no_curve(drawn):
    curves = (FOLDER / "figures/open-training.svg").read_text()
    assert ">SCAN i-t AVG<" in curves
    assert "12 regions" not in curves
    assert "12 regions" in (FOLDER / "figures/open-similarities.svg").read_text()


@pytest.fixture(params=["with figures", "without figures"])
def reported(request) -> None:
    """A report, and one without figures."""
    if request.param == "with figures":
        request.getfixturevalue("drawn")
    else:
        report.write_report(request.getfixturevalue("played"))


def test_links_and_pictures_of_every_page_resolve(reported):
    found = markdown_pages()
    names = {str(path.relative_to(FOLDER)) for path in found}
    papers = {f"papers/{path.stem}.md" for path in PAPERS.glob("*.yaml")}
    datasets = {f"datasets/{dataset}.md" for dataset in DATASETS}
    assert names == papers | datasets | {"README.md", "claims.md", "fidelity.md", "local/gated.md"}
    for path in found:
        assert links(path) or path.parent.name == "local", path
        for target in links(path):
            assert (path.parent / target).is_file(), (path, target)
    for path in (FOLDER / "datasets/open.md", FOLDER / "local/gated.md"):
        assert any(target.endswith(".png") for target in links(path))


def test_every_page_is_reachable_from_the_first(reported):
    reached, waiting = set(), [README]
    while waiting:
        path = waiting.pop()
        reached.add(path.resolve())
        found = [(path.parent / target).resolve() for target in links(path)]
        waiting += [one for one in found if one.suffix == ".md" and one not in reached]
    assert {path.resolve() for path in markdown_pages()} == reached


def test_every_figure_of_the_folder_is_on_a_page_as_picture_and_as_link(drawn):
    """What no page shows would be left behind for ever."""
    found = {
        (path.parent / target).resolve() for path in markdown_pages() for target in links(path)
    }
    files = {path.resolve() for path in FOLDER.rglob("*.[ps][nv]g")}
    assert {path for path in found if path.suffix in (".png", ".svg")} == files


def assert_contained(path: Path) -> None:
    """What others wrote is text: no cell of a table, no HTML, no link, no picture, no heading."""
    text = path.read_text()
    tokens = parsed(text)
    inline = [child for token in tokens for child in token.children or ()]
    html = {t.content.strip() for t in [*tokens, *inline] if t.type.startswith("html")}
    assert html <= {"<!-- generated by `python -m benchmark report`; do not edit -->", "<br>"}
    assert "evil" not in " ".join(links(path))
    headings = [
        plain(b) for a, b in zip(tokens, tokens[1:], strict=False) if a.type == "heading_open"
    ]
    assert "top" not in headings
    strong = [
        b.content for a, b in zip(inline, inline[1:], strict=False) if a.type == "strong_open"
    ]
    assert "fat" not in strong
    assert not [t for t in inline if t.type == "code_inline" and t.content == "typed"]
    assert_tables_are_whole(text)


def assert_tables_are_whole(text: str) -> None:
    """All lines of a table have as many cells as its heads."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("|"):
            table = [line, *takewhile(lambda line: line.startswith("|"), lines)]
            assert len(table) > 2
            assert re.fullmatch(r"\|(:-+:?\||-+:\|)+", table[1]), table[1]
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table}) == 1, table[0]


def seen(path: Path) -> str:
    """All text of a page as a reader sees it, one line a paragraph, heading or cell."""
    return "\n".join(plain(token) for token in parsed(path.read_text()) if token.children)


def test_hostile_text_of_records_cards_and_captions_stays_text(drawn):
    for path in markdown_pages():
        assert_contained(path)
    shown = " ".join(HOSTILE.split())
    for name in ("README.md", "claims.md", "fidelity.md", "datasets/open.md", "papers/scan.md"):
        assert shown in seen(FOLDER / name), name
    dataset = seen(FOLDER / "datasets/open.md")
    for part in ("Dataset open ", "open text 7 ", "trained on ", "not applicable", "epochs = "):
        assert part in dataset
    assert f"gated text 7 {shown}" in seen(FOLDER / "local/gated.md")


def test_figures_hold_no_script(drawn):
    drawings = sorted(FOLDER.rglob("*.svg"))
    assert any("alert(1)" in path.read_text() for path in drawings)
    for path in drawings:
        assert "<script" not in path.read_text(), path


def test_hostile_text_of_presets_papers_and_figures_stays_text(played, monkeypatch):
    changed = presets_once()[MEMBERS[0]][1].model_copy(update={"title": HOSTILE, "note": HOSTILE})
    known = presets_once() | {MEMBERS[0]: ("scan", changed)}
    monkeypatch.setattr(boards, "presets", lambda: known)
    monkeypatch.setattr(season_pages, "papers", lambda: {"hostile": hostile_paper()})
    monkeypatch.setattr(claims, "papers", lambda: {"hostile": hostile_paper()})
    facts = dict.fromkeys(("paper", "code", "ours", "why", "option"), HOSTILE)
    monkeypatch.setattr(
        season_pages, "fidelity", lambda: {HOSTILE: [Entry(topic="a | b", **facts)]}
    )
    alt = [Picture(name="similarities", figure=Figure(figsize=(1, 1)), alt=HOSTILE)]
    monkeypatch.setattr(illustrations, "of_dataset", lambda *_: alt)
    monkeypatch.setattr(illustrations, "of_paper", lambda *_: alt)
    monkeypatch.setattr(illustrations, "of_claims", lambda *_: alt)
    report.write_report(played)
    for path in markdown_pages():
        assert_contained(path)
        images = [t for token in parsed(path.read_text()) for t in token.children or ()]
        for one in images:
            if one.type == "image" and "alert" in one.content:
                assert one.content.replace("\\", "").endswith(" ".join(HOSTILE.split())), path
    shown = " ".join(HOSTILE.split())
    for name in ("README.md", "claims.md", "fidelity.md", "datasets/open.md"):
        assert shown in seen(FOLDER / name), name
    (_, tested, table) = (
        shown_table((FOLDER / "papers/hostile.md").read_text(), head)
        for head in ("why it was not run", "verdict", "numbers of")
    )
    row = tested.row(shown)
    assert row["claim"] == shown and shown in row["remark"]
    ours, unplayed = table.row(shown), table.records()[-1]
    assert (ours["row"], ours["setting"], ours["remark"]) == (shown, shown, shown)
    assert unplayed["remark"] == shown


def hostile_paper() -> Paper:
    about = About(title=HOSTILE, authors=HOSTILE, year=2018, venue=HOSTILE, source=HOSTILE)
    words = {"label": HOSTILE, "setting": HOSTILE, "note": HOSTILE}
    numbers = {"flickr30k/test": [50.0]}
    rows = [
        Row(**words, preset=MEMBERS[0], numbers=numbers),
        Row(**words, unplayed=HOSTILE, numbers=numbers),
    ]
    table = Table(title=HOSTILE, metrics=["i2t_r1"], rows=rows, note=HOSTILE)
    said = {"statement": HOSTILE, "where": HOSTILE, "metric": "rsum", "note": HOSTILE}
    made = [
        Claim(id="a", presets=list(MEMBERS), **said),
        Claim(id="b", unplayed=HOSTILE, **said),
    ]
    return Paper(paper=about, tables={"1": table}, claims=made)


def test_nothing_of_pictures_that_may_not_be_published_is_outside_of_local(drawn):
    published = {name: data for name, data in contents(FOLDER).items() if "/local/" not in name}
    assert any(b"open text 8" in data for name, data in published.items() if name.endswith(".svg"))
    assert any(b"open text 8" in data for name, data in published.items() if name.endswith(".md"))
    for name, data in published.items():
        assert b"gated text" not in data, name
        assert "gallery/gated" not in name
        assert not re.search("gated-(words|attention)", name)
    local = {name: data for name, data in contents(FOLDER / "local").items() if "gated" in name}
    assert any(b"gated text 8" in data for name, data in local.items() if name.endswith(".svg"))
    assert any(b"gated text" in data for name, data in local.items() if name.endswith(".md"))
    assert any(re.search(r"local/gated/\d{6}.*\.png$", name) for name in local)


def test_the_samples_of_words_name_captions_and_never_quote_them(drawn):
    """What a cell leaves behind is committed, whatever may be published."""
    for path in Path("results").rglob("*"):
        assert path.is_dir() or b"gated text" not in path.read_bytes(), path


def test_reading_records_needs_no_torch():
    code = "import sys, benchmark.report; sys.exit('torch' in sys.modules)"
    root = Path(report.__file__).parent.parent
    assert subprocess.run([sys.executable, "-c", code], cwd=root).returncode == 0


def test_the_time_of_a_pair_is_not_rounded_away():
    seconds = {"training": 1234.5678, "per_pair": 2.13456e-8}
    kept = provenance(torch.device("cpu"), seconds).seconds
    assert kept == {"training": 1235.0, "per_pair": 2.135e-8}


class TestMetrics:
    def read(self) -> dict:
        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is no JSON")

        return json.loads((FOLDER / "metrics.json").read_text(), parse_constant=refuse)

    def test_they_are_means_over_the_seeds(self, played):
        report.write_report(played)
        found = self.read()
        records = [
            json.loads(Path(f"results/try/open/{FUSION}/{seed}/record.json").read_text())
            for seed in (0, 1)
        ]
        for name in ("rsum", "i2t_r1", "t2i_medr", "overlap_s_low", "i2t_r1_tie_gap"):
            expected = sum(one["metrics"][name] for one in records) / 2
            assert found["open"][FUSION][name] == pytest.approx(expected)
        assert set(found) == set(DATASETS)
        assert set(found["open"]) == {*PRESETS, "claims"}
        numbers = [x for name in PRESETS for x in found["open"][name].values()]
        assert all(isfinite(number) for number in numbers)

    def test_the_claims_are_counted(self, played):
        report.write_report(played)
        counts = self.read()["open"]["claims"]
        assert set(counts) == {"holds", "does not hold", "undecided", "not run"}
        papers = [yaml.safe_load(path.read_text()) for path in PAPERS.glob("*.yaml")]
        assert sum(counts.values()) == sum(len(paper["claims"]) for paper in papers)
        # Of the four presets no two are compared by a claim.
        assert counts["not run"] == sum(counts.values())

    def test_a_season_in_which_everything_failed_still_has_a_report(self, played):
        params = season(seeds=(0,))
        for one in cells(params):
            lose(one.dataset, one.preset, one.seed, "out of luck")
        report.write_report(params)
        for dataset in DATASETS:
            assert page(dataset).count("out of luck") == 4
            assert "No preset has a result" in on_readme(dataset)
        found = self.read()
        assert set(found) == set(DATASETS)
        assert all(set(of_dataset) == {"claims"} for of_dataset in found.values())
        for path in markdown_pages():
            assert_contained(path)


def test_plots_are_tables_for_dvc(played):
    report.write_report(played)
    curves = pd.read_csv(FOLDER / "plots/training.csv")
    assert list(curves.columns) == ["epoch", "loss", "val_rsum", "cell"]
    trained = [one for one in PRESETS if one != FUSION]
    named = {
        f"{dataset} {preset} {s}" for dataset in DATASETS for preset in trained for s in (0, 1)
    }
    assert set(curves["cell"]) == named
    assert curves.groupby("cell")["val_rsum"].apply(list).tolist() == [[90, 99, 98]] * len(named)
    board = pd.read_csv(FOLDER / "plots/leaderboard.csv")
    assert list(board.columns) == ["dataset", "preset", "rsum"]
    assert len(board) == len(DATASETS) * len(PRESETS)
    metrics = json.loads((FOLDER / "metrics.json").read_text())
    for row in board.itertuples():
        assert row.rsum == pytest.approx(metrics[row.dataset][row.preset]["rsum"])


def test_the_leaderboard_is_sorted_and_shows_the_spread(played):
    report.write_report(played)
    for text in (on_readme("open"), page("open")):
        rows = shown_table(text, "rsum").records()
        assert "t-i AVG + i-t LSE" in rows[0]["preset"]
        assert "bi-directional" in rows[-1]["preset"]
        assert len(rows) == len(PRESETS)
        assert "\N{PLUS-MINUS SIGN}" in rows[0]["i2t R@1"]
        assert "\N{PLUS-MINUS SIGN}" in rows[0]["rsum"]


def test_one_seed_shows_plain_numbers(played):
    report.write_report(season(seeds=(0,)))
    for path in markdown_pages():
        rows = [line for line in path.read_text().splitlines() if line.startswith("|")]
        assert not [line for line in rows if "\N{PLUS-MINUS SIGN}" in line], path
    assert "One seed was played" in page("open")
    report.write_report(season())
    assert "One seed was played" not in page("open")


def test_spread_is_the_sample_standard_deviation():
    assert spread([1.0, 3.0], 2) == f"2.00 {PLUS_MINUS}1.41"
    assert spread([1.25], 1) == "1.2"
    assert spread([4], 1) == "4"
    assert spread([], 1) == "-"


def test_the_best_of_a_column_is_bold_and_so_are_its_ties(played):
    for seed in (0, 1):
        for preset in MEMBERS:  # the same scores: ties in every column
            near = 90.04 if preset == MEMBERS[0] else 90.0
            amend_metrics(preset, seed, rsum=100.0, i2t_r1=near, overlap_s=0.0, t2i_medr=1)
        amend_metrics(FUSION, seed, i2t_r1=10.0, overlap_s=0.9, t2i_medr=7, rsum=99.0)
    report.write_report(played)
    for text in (on_readme("open"), page("open")):
        for start in ("SCAN t-i AVG  ", "SCAN i-t LSE"):
            for head in ("i2t R@1", "t2i MedR", "S"):
                assert raw(start, head, text).startswith("**"), (start, head)
        for head in ("i2t R@1", "t2i MedR", "rsum", "S"):
            assert not raw("SCAN t-i AVG +", head, text).startswith("**")


def test_an_s_above_its_bound_is_marked_and_never_the_best(played):
    for seed in (0, 1):
        amend_metrics("scan_t2i_avg", seed, overlap_s=0.001, one_minus_ks=-0.1)
    report.write_report(played)
    for text in (on_readme("open"), page("open")):
        assert raw("SCAN t-i AVG  ", "S", text).endswith("\\*")
        assert "**" not in raw("SCAN t-i AVG  ", "S", text)
        assert raw("SCAN t-i AVG +", "S", text).startswith("**")
        assert "too coarse" in text
    for text in (on_readme("gated"), page("gated")):
        assert "too coarse" not in text


def test_a_failed_cell_is_a_row_with_its_reason(played):
    for seed in (0, 1):
        lose("open", "two_branch_bidirectional", seed, "the loss | is NaN")
    lose("gated", "two_branch_bidirectional", 1, "diverged")
    report.write_report(played)
    assert "the loss \\| is NaN" in page("open")
    told = shown_table(page("open"), "reason").records()
    assert [(row["seed"], row["status"], row["reason"]) for row in told] == [
        ("0", "failed", "the loss | is NaN"),
        ("1", "failed", "the loss | is NaN"),
    ]
    (told,) = shown_table(page("gated"), "reason").records()
    assert (told["seed"], told["reason"]) == ("1", "diverged")
    for text in (on_readme("open"), page("open")):
        lost = shown_table(text, "rsum").records()[-1]
        assert lost["preset"].startswith("Two-branch")
        assert (lost["seeds"], lost["i2t R@1"], lost["rsum"]) == ("0 of 2", "failed", "-")
    for text in (on_readme("gated"), page("gated")):
        assert shown_table(text, "rsum").row("Two-branch")["seeds"] == "1 of 2"
    assert "without a result: 2 of 8" in on_readme("open")
    assert "without a result: 1 of 8" in on_readme("gated")
    found = json.loads((FOLDER / "metrics.json").read_text())
    assert "two_branch_bidirectional" not in found["open"]


def test_a_cell_that_is_not_applicable_is_a_row_with_its_reason(played):
    reason = "gated: neighbourhood sampling expects 2 captions"
    for seed in (0, 1):
        lose("gated", "two_branch_bidirectional", seed, reason, status="not_applicable")
    report.write_report(played)
    for text in (on_readme("gated"), page("gated")):
        row = shown_table(text, "rsum").row("Two-branch")
        assert (row["seeds"], row["i2t R@1"]) == ("0 of 2", "not applicable")
    assert "expects 2 captions" in page("gated")
    for text in (on_readme("open"), page("open")):
        assert "not applicable" not in text


def test_a_cell_whose_text_was_never_read_says_so(played):
    for seed in (0, 1):
        amend("scan_i2t_lse", seed, text_features={})
    report.write_report(played)
    assert page("open").count("Text: never read.") == 1
    assert "Text: never read." not in page("gated")


def test_a_training_of_no_epochs_has_no_epochs(played):
    for seed in (0, 1):
        stop_at_once("open", "scan_i2t_lse", seed)
    report.write_report(played)
    cost = shown_table(page("open"), "epochs")
    untrained, trained = cost.row("SCAN i-t LSE"), cost.records()
    assert (untrained["epochs"], untrained["selected epoch"]) == ("-", "-")
    trained = next(row for row in trained if row["preset"] == "SCAN t-i AVG")
    assert (trained["epochs"], trained["selected epoch"]) == ("3", "2")


def add_sentences(preset: str, seed: int, **metrics: float) -> None:
    amend_metrics(preset, seed, **{f"s2s_{key}": value for key, value in metrics.items()})
    folder = Path(f"results/try/open/{preset}/{seed}")
    ranks = pd.read_parquet(folder / "scores/ranks.parquet").groupby("direction")["rank"]
    found = {way: of_way.to_numpy() for way, of_way in ranks}
    write_ranks(folder, found | {"s2s": np.zeros(CAPTIONS, dtype=np.int64)})


def test_sentences_are_a_table_of_the_presets_that_embed_text(played):
    for seed in (0, 1):
        add_sentences("two_branch_bidirectional", seed, r1=60.0 + seed, r5=80.0, r10=90.0, medr=1)
        add_sentences("scan_i2t_lse", seed, r1=50.0, r5=85.0, r10=90.0, medr=2)
    report.write_report(played)
    text = page("open")
    assert text.count("Sentence to sentence") == 1
    part = text[text.index("Sentence to sentence") :]
    part = part[: part.index("\n## ")]
    assert "among all captions but itself" in part
    assert raw("Two-branch", "s2s R@1", part) == f"**60.5 {PLUS_MINUS}0.7**"
    assert not raw("SCAN i-t", "s2s R@1", part).startswith("**")
    assert raw("SCAN i-t", "s2s R@5", part).startswith("**85.0")
    assert not raw("Two-branch", "s2s R@5", part).startswith("**")
    for start in ("Two-branch", "SCAN i-t"):
        assert raw(start, "s2s R@10", part).startswith("**90.0")  # a tie
    # of medians the smaller one is better
    assert raw("Two-branch", "s2s MedR", part).startswith("**1.0")
    assert "SCAN t-i AVG" not in part


def test_without_sentence_queries_there_is_no_table_of_them(played):
    report.write_report(played)
    for dataset in DATASETS:
        assert "Sentence to sentence" not in page(dataset)


def test_remarks_tell_fusions_starts_and_notes(played, monkeypatch):
    rows = {name: row for name, (_, row) in presets_once().items()}
    parts = Fuse(how="adaptive", of=["scan_t2i_avg:visual", "scan_i2t_lse"])
    changed = {
        FUSION: rows[FUSION].model_copy(update={"fuse": parts}),
        "scan_i2t_lse": rows["scan_i2t_lse"].model_copy(
            update={"start": "scan_t2i_avg", "note": "A remark."}
        ),
    }
    known = presets_once() | {name: ("scan", row) for name, row in changed.items()}
    monkeypatch.setattr(boards, "presets", lambda: known)
    report.write_report(played)
    for text in (page("open"), (FOLDER / "fidelity.md").read_text()):
        remarks = shown_table(text, "kind")
        assert list(remarks.row("fusion").values())[1:] == [
            "adaptive of scan_t2i_avg:visual and scan_i2t_lse, options as theirs",
            "SCAN t-i AVG + i-t LSE",
        ]
        start = remarks.row("start")
        assert list(start.values())[1:] == ["goes on from scan_t2i_avg", "SCAN i-t LSE"]
        assert list(remarks.row("scaled").values())[1:] == ["epochs = 3", "all"]
        assert list(remarks.row("deviation").values())[1:] == ["image features: cnn", "all"]
        assert any("A remark." in row[1] and "SCAN i-t LSE" in row[2] for row in remarks.rows)


def test_fidelity_sets_paper_code_and_ours_side_by_side(played):
    report.write_report(played)
    text = (FOLDER / "fidelity.md").read_text()
    found = {one.heading: one for one in shown_tables(text) if "paper" in one.heads}
    folder = PAPERS.parent / "fidelity"
    for path in folder.glob("*.yaml"):
        entries = yaml.safe_load(path.read_text())["entries"]
        rows = found[path.stem].records()
        assert [row["topic"] for row in rows] == [" ".join(one["topic"].split()) for one in entries]
        for row, entry in zip(rows, entries, strict=True):
            assert row["ours"] == " ".join(entry["ours"].split())
    remarks = [one for one in shown_tables(text) if "kind" in one.heads]
    assert len(remarks) == len(DATASETS)


@pytest.mark.parametrize(
    ("preset", "command"),
    [("scan_i2t_lse", "evaluate@open-scan_i2t_lse-1"), (FUSION, f"fuse@open-{FUSION}-1")],
)
def test_a_missing_record_names_the_cell_and_the_command(played, preset, command):
    Path(f"results/try/open/{preset}/1/record.json").unlink()
    with pytest.raises(UserError, match=f"open-{preset}-1 .*dvc repro {command}$"):
        report.write_report(played)
    assert not README.exists()


@pytest.mark.parametrize(
    "name",
    ["scores/samples.npz", "scores/ranks.parquet", "scores/cost.json", "training/history.csv"],
)
def test_a_missing_file_names_the_cell_and_the_command(played, name):
    Path(f"results/try/open/scan_i2t_lse/1/{name}").unlink()
    with pytest.raises(UserError, match=f"{name}: not found.*evaluate@open-scan_i2t_lse-1$"):
        report.write_report(played)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("schema_version", 0),
        ("protocol_version", 0),
        ("season", "other"),
        ("dataset", "gated"),
        ("preset", "other"),
        ("seed", 5),
        ("split", "other/test"),
        ("manifest_sha256", "other"),
        ("captions", 1),
    ],
)
def test_a_record_that_is_not_of_this_grid_is_refused(played, name, value):
    amend("scan_i2t_lse", 1, **{name: value})
    with pytest.raises(UserError, match=f"{name}: expected .*evaluate@open-scan_i2t_lse-1"):
        report.write_report(played)


def test_a_record_of_other_phrases_is_refused(played):
    amend("scan_i2t_lse", 1, task="localisation", phrases=7)
    with pytest.raises(UserError, match="phrases: expected 0 .* found 7; .*scan_i2t_lse-1"):
        report.write_report(played)


def test_a_record_outside_of_the_grid_is_not_read(played):
    report.write_report(played)
    first = contents(FOLDER)
    stray = Path("results/try/open/scan_i2t_lse/2")
    stray.mkdir()
    (stray / "record.json").write_text("not json")
    Path("results/try/open/unheard_of/0").mkdir(parents=True)
    report.write_report(played)
    assert contents(FOLDER) == first


def test_a_fusion_costs_what_its_members_cost(played):
    report.write_report(played)
    cost = shown_table(page("open"), "epochs")
    assert cost.row("SCAN t-i AVG +")["training (s)"] == "21.0"
    assert cost.row("SCAN i-t LSE")["training (s)"] == "10.5"


def test_thumbnails_are_small(played):
    report.write_report(played)
    paths = list((FOLDER / "figures" / "gallery").rglob("*.png"))
    assert paths
    for path in paths:
        with Image.open(path) as thumbnail:
            assert max(thumbnail.size) <= 128


def test_a_gallery_that_may_not_be_published_stays_local(played):
    report.write_report(played)
    assert "open text" in page("open")
    assert "gated text" in (FOLDER / "local" / "gated.md").read_text()
    assert not (FOLDER / "figures" / "gallery" / "gated").exists()
    assert not (FOLDER / "local" / "open.md").exists()
    assert "(../local/gated.md)" in page("gated")
    assert "python -m benchmark report" in page("gated").split("\n", 1)[1]
    for name, data in contents(FOLDER).items():
        assert "/local/" in name or b"gated text" not in data, name


def test_without_raw_files_only_the_local_gallery_is_left_out(played, capsys):
    report.write_report(played)
    first = contents(FOLDER)
    os.rename("data/raw/gated", "data/raw/away")
    for path in (FOLDER / "local").rglob("*"):
        if path.is_file():
            path.unlink()
    report.write_report(played)
    assert "no local gallery of gated" in capsys.readouterr().err
    assert contents(FOLDER) == {k: v for k, v in first.items() if "/local/" not in k}


def test_what_an_earlier_report_left_is_removed(played):
    report.write_report(played)
    first = contents(FOLDER)
    left = ("figures/old.png", "figures/gallery/gone/1.png", "figures/.half.png.12.part")
    pages = ("papers/gone.md", "datasets/gone.md")
    for name in (*left, *pages, "local/gated/gated-words.png"):
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    (FOLDER / "local" / "notes.md").write_text("mine")
    report.write_report(played)
    assert not (FOLDER / "figures" / "gallery" / "gone").exists()
    assert (FOLDER / "local" / "notes.md").read_text() == "mine"
    (FOLDER / "local" / "notes.md").unlink()
    assert contents(FOLDER) == first


def test_pages_of_what_is_no_longer_in_the_season_are_removed(played, monkeypatch):
    report.write_report(played)
    kept = {"open": played.datasets["open"]}
    fewer = {key: one for key, one in played.cells.items() if one.dataset == "open"}
    fused = {key: one for key, one in played.fusions.items() if one.dataset == "open"}
    changed = played.model_copy(update={"datasets": kept, "cells": fewer, "fusions": fused})
    some = {"scan": benchmark.papers.printed_tables.papers()["scan"]}
    monkeypatch.setattr(season_pages, "papers", lambda: some)
    report.write_report(changed)
    assert [path.name for path in (FOLDER / "papers").iterdir()] == ["scan.md"]
    assert [path.name for path in (FOLDER / "datasets").iterdir()] == ["open.md"]
    assert (FOLDER / "local" / "gated.md").is_file()  # the user's own machine, the user's own file
    for path in (README, *(FOLDER / "papers").iterdir()):
        assert "gated" not in path.read_text()


def test_a_training_that_ended_at_its_best_is_told(played):
    report.write_report(played)
    told = "the last epoch was the best: more epochs may help"
    both = [FOLDER / "datasets/open.md", FOLDER / "fidelity.md"]
    assert not any(told in path.read_text() for path in both)
    path = Path(f"results/try/open/{PRESETS[0]}/0/history.csv")
    rows = pd.read_csv(path)
    rows.loc[:1].to_csv(path, index=False)  # two epochs, the second was selected
    report.write_report(played)
    for path in both:
        (row,) = [line for line in path.read_text().splitlines() if told in line]
        assert "Two-branch, nonlinear, bi-directional" in row and "SCAN" not in row


class TestPaperPages:
    """The papers' tables against the YAML files, read here as what they are: YAML."""

    def of(self, name: str) -> list[Shown]:
        text = (FOLDER / f"papers/{name}.md").read_text()
        return [one for one in shown_tables(text) if "numbers of" in one.heads]

    def test_all_tables_are_there_with_every_row_as_printed(self, played):
        report.write_report(played)
        counted = 0
        for path in PAPERS.glob("*.yaml"):
            shown = iter(self.of(path.stem))
            for number, source in yaml.safe_load(path.read_text())["tables"].items():
                counted += 1
                for place in places(source):
                    self.check(next(shown), number, source, place)
            assert next(shown, None) is None
        assert counted == 23

    def check(self, shown: Shown, number: str, table: dict, place: str) -> None:
        assert re.search(rf"\b{re.escape(number)}\b", shown.heading)
        assert place in f"{shown.heading} {shown.lead}"
        expected = [row for row in table["rows"] if place in row["numbers"]]
        printed = [row for row in shown.records() if row["numbers of"] == "paper"]
        assert [row["row"] for row in printed] == [
            " ".join(row["label"].split()) for row in expected
        ]
        for found, row in zip(printed, expected, strict=True):
            assert found["setting"] == " ".join(row.get("setting", "").split())
            assert found["remark"] == " ".join(row.get("note", "").split())
            numbers = dict(zip(table["metrics"], row["numbers"][place], strict=True))
            for metric, value in numbers.items():
                cell = found[METRICS[metric].head]
                assert cell == "-" if value is None else float(cell) == value
            if set(RECALLS) <= set(numbers):
                terms = [numbers[metric] for metric in RECALLS]
                total = "-" if None in terms else f"{sum(terms):.1f}"
                assert found["rsum"] == total

    def test_own_rows_have_what_was_measured_here_or_a_reason(self, played):
        lose("gated", "scan_t2i_avg", 0, "diverged")
        lose("gated", "scan_t2i_avg", 1, "diverged")
        report.write_report(played)
        told = defaultdict(int)
        for path in PAPERS.glob("*.yaml"):
            shown = iter(self.of(path.stem))
            for source in yaml.safe_load(path.read_text())["tables"].values():
                for place in places(source):
                    rows = [row for row in source["rows"] if place in row["numbers"]]
                    for row, ours in zip(rows, self.below(next(shown)), strict=True):
                        told[self.kind(row, ours)] += 1
        assert min(told.values()) > 0
        assert set(told) == {"of others", "not in the season", "measured", "lost"}

    def below(self, shown: Shown) -> list[list[dict[str, str]]]:
        """The rows under each printed one."""
        found = []
        for row in shown.records():
            if row["numbers of"] == "paper":
                found.append([])
            else:
                found[-1].append(row)
        return found

    def kind(self, row: dict, ours: list[dict[str, str]]) -> str:
        """What stands under a printed row, having checked that it does."""
        numbers = [[c for h, c in one.items() if h in HEADS] for one in ours]
        if "preset" not in row:
            assert ours == []
            return "of others"
        here = [one for one in ours if one["numbers of"].startswith("here: ")]
        assert [one["numbers of"][6:] for one in here] == ["Dataset gated", "Dataset open"]
        if row["preset"] not in PRESETS:
            assert {one["remark"] for one in ours} == {"not played in this season"}
            assert {cell for cells in numbers for cell in cells} == {"-"}
            return "not in the season"
        assert "2 seeds" in here[1]["remark"] and "not comparable" in here[1]["remark"]
        if row["preset"] == "scan_t2i_avg":
            assert here[0]["remark"] == "failed: diverged"
            assert set(numbers[0]) == {"-"}
            return "lost"
        return "measured"

    def test_numbers_of_another_dataset_are_marked(self, played):
        report.write_report(played)
        table = self.of("scan")[0]
        assert "Table 1:" in table.heading
        rows = table.records()
        start = [row["row"] for row in rows].index("SCAN t-i AVG + i-t LSE")
        printed, gated, _, open_, _ = rows[start : start + 5]
        assert list(printed.values())[3:10] == [
            *("67.4", "90.3", "95.8", "48.6", "77.7", "85.2", "465.0")
        ]
        for row in (gated, open_):
            assert "not comparable: other dataset, other features" in row["remark"]
        records = [
            json.loads(Path(f"results/try/open/{FUSION}/{seed}/record.json").read_text())
            for seed in (0, 1)
        ]
        mean = fmean(one["metrics"]["t2i_r5"] for one in records)
        assert open_["t2i R@5"].startswith(f"{mean:.1f} \N{PLUS-MINUS SIGN}")

    def test_what_is_not_printed_is_a_dash(self, played, monkeypatch):
        """A row may be of the validation split, of our dataset, or with recalls left out."""
        some = {"numbers": {"flickr30k/test": [10.5, *[None] * 4, 60]}}
        full = {"numbers": {"open/val": [10.0] * 6, "open/test": [10.0] * 6}}
        rows = [
            Row(label="some", preset=MEMBERS[0], **some),
            Row.model_construct(label="full", preset=MEMBERS[0], **full),
        ]
        table = Table.model_construct(title="t", metrics=RECALLS, rows=rows)
        splits = {"open": "made"}
        about = About(title="t", authors="a", year=2018, venue="v", source="s", splits=splits)
        paper = Paper.model_construct(paper=about, tables={"1": table}, claims=[])
        monkeypatch.setattr(season_pages, "papers", lambda: {"made": paper})
        report.write_report(played)
        flickr, validation, test = self.of("made")
        assert list(flickr.row("some").values())[3:10] == ["10.5", *["-"] * 4, "60.0", "-"]
        assert list(validation.row("full").values())[3:10] == ["10.0"] * 6 + ["60.0"]
        remarks = [
            next(
                row["remark"] for row in one.records() if row["numbers of"] == "here: Dataset open"
            )
            for one in (flickr, validation, test)
        ]
        assert "not comparable: other dataset, other features" in remarks[0]
        assert "not comparable: other split, other features" in remarks[1]
        assert "not comparable: other features" in remarks[2]


def places(source: dict) -> list[str]:
    """Where a table of a YAML file has numbers of."""
    return list(dict.fromkeys(place for row in source["rows"] for place in row["numbers"]))


HEADS = {metric.head for metric in METRICS.values()}


class TestClaims:
    """Three seeds of presets that hit with every query, or with none."""

    QUALITY = {
        "scan_i2t_avg": 1.0,
        "scan_i2t_max": 1.0,
        "scan_i2t_lse": -1.0,
        "scan_all_negatives": -1.0,
    }

    @pytest.fixture
    def verdicts(self, tmp_path, monkeypatch) -> Shown:
        """The table of what was tested."""
        monkeypatch.chdir(tmp_path)
        undrawn(monkeypatch)
        params = season(seeds=(0, 1, 2), played=tuple(self.QUALITY))
        for dataset in DATASETS:
            prepare(dataset)
        for one in cells(params):
            play(one, self.QUALITY[one.preset], noise=0.0)
        report.write_report(params)
        return shown_table((FOLDER / "claims.md").read_text(), "verdict")

    def row(self, verdicts: Shown, compared: str) -> dict[str, str]:
        return next(row for row in verdicts.records() if row["compared"] == compared)

    def test_a_claim_that_holds_stands_with_its_numbers(self, verdicts):
        row = self.row(verdicts, "scan_i2t_avg beats scan_all_negatives")
        assert row["verdict"] == "holds"
        assert row["metric"] == "i2t R@1"
        assert row["here"] == f"100.0 {PLUS_MINUS}0.0 against 0.0 {PLUS_MINUS}0.0"
        assert (row["difference"], row["printed"]) == ("+100.0", "+22.1")  # 67.9 - 45.8
        assert row["95% interval"] == "[+100.0,\N{NO-BREAK SPACE}+100.0]"
        assert "the interval lies above zero" in row["remark"]
        assert "scan: Section 4.4, table 4" in row["remark"]

    def test_one_that_does_not_hold_stands_with_its_numbers(self, verdicts):
        row = self.row(verdicts, "scan_i2t_lse beats scan_i2t_max")
        assert row["verdict"] == "does not hold"
        assert (row["metric"], row["difference"]) == ("rsum", "-600.0")
        assert row["printed"] == "+20.8"  # 451.4 - 430.6
        assert row["95% interval"] == "[-600.0,\N{NO-BREAK SPACE}-600.0]"

    def test_one_that_is_undecided_stands_with_its_numbers(self, verdicts):
        row = self.row(verdicts, "scan_i2t_avg beats scan_i2t_max")
        assert row["verdict"] == "undecided"
        assert (row["difference"], row["p, Holm"], row["printed"]) == ("+0.0", "1", "+21.6")
        assert "the interval covers zero" in row["remark"]

    def test_p_is_adjusted_for_all_comparisons_of_the_dataset(self, verdicts):
        """Five comparisons. All images agree in four of them: of the 2^12 ways to exchange, two
        reach that far, and the same permutations meet all four."""
        rows = verdicts.records()
        assert len(rows) == 5
        decided = {float(row["p, Holm"]) for row in rows if row["difference"] != "+0.0"}
        assert len(decided) == 1
        assert decided.pop() == pytest.approx(5 * 2 / 2**12, rel=1)

    def test_one_that_was_not_run_stands_with_its_reason(self, verdicts):
        text = (FOLDER / "claims.md").read_text()
        rows = shown_table(text, "why it was not run").records()
        papers = [yaml.safe_load(path.read_text()) for path in PAPERS.glob("*.yaml")]
        told = [" ".join(one["statement"].split()) for paper in papers for one in paper["claims"]]
        tested = {row["claim"] for row in verdicts.records()}
        assert sorted([row["claim"] for row in rows] + sorted(tested)) == sorted(told)
        assert all(row["why it was not run"] for row in rows)
        by_compared = {row["compared"]: row for row in rows}
        row = by_compared["scan_i2t_lse beats scan_i2t_sum"]
        assert row["why it was not run"] == "scan_i2t_sum was not played"
        assert row["printed"] == "451.4 against 446.9"
        unplayed = next(row for row in rows if "matches whole images" in row["claim"])
        assert unplayed["why it was not run"] == "VSE++ is none of the five methods"

    def test_they_are_counted_everywhere_alike(self, verdicts):
        counts = json.loads((FOLDER / "metrics.json").read_text())["open"]["claims"]
        assert counts == {"holds": 3, "does not hold": 1, "undecided": 1, "not run": 87}
        counted = r"3 hold\w*, 1 do\w* not hold, 1 (\w+ )?undecided, 87 (\w+ )?not run"
        for text in (on_readme("open"), (FOLDER / "claims.md").read_text()):
            assert re.search(counted, text)
        of_paper = (FOLDER / "papers/scan.md").read_text()
        assert re.search(counted.replace("87", "24"), of_paper)
        assert len(shown_table(of_paper, "verdict").rows) == 5

    def test_only_what_was_compared_is_in_the_forest(self, verdicts):
        params = season(seeds=(0, 1, 2), played=tuple(self.QUALITY))
        board = boards.read_boards(params)[0]
        judged = claims.verdicts(board)
        run = [one for one in judged if one.verdict != "not run"]
        assert (len(run), len(judged)) == (5, 92)
        (drawn,) = OF_CLAIMS(board, judged)
        (same,) = OF_CLAIMS(board, run)
        assert drawn.figure.get_size_inches().tolist() == same.figure.get_size_inches().tolist()
        assert list(OF_CLAIMS(board, [one for one in judged if one not in run])) == []


class TestExport:
    def printed(self, capsys, *arguments: str) -> str:
        assert asked(*arguments) == 0
        return capsys.readouterr().out

    def test_the_list_names_every_table_and_each_can_be_had(self, played, capsys):
        names = self.printed(capsys, "--table", "list").splitlines()
        assert len(names) == len(set(names))
        numbers = {name.partition(" ")[0] for name in names if not name.startswith(DATASETS)}
        assert len(numbers) == 23
        assert {"two_branch/2", "scan/5", "cyclematch/6.2", "instance_loss/8"} <= numbers
        found = report.tables_of(boards.read_boards(played))
        assert list(found) == names
        for shown in found.values():
            for form in report.FORMATS.values():
                assert form(shown).count("\n") > len(shown.rows)
        for dataset in DATASETS:
            assert {f"{dataset}/leaderboard", f"{dataset}/claims-not-run"} <= set(names)
        assert not FOLDER.exists()  # instead of a report

    def test_csv_has_the_numbers_of_the_paper_and_of_here(self, played, capsys):
        text = self.printed(capsys, "--table", "two_branch/2", "--format", "csv")
        heads, *rows = csv.reader(io.StringIO(text))
        assert {len(row) for row in rows} == {len(heads)}
        source = yaml.safe_load((PAPERS / "two_branch.yaml").read_text())["tables"]["2"]
        printed = [row for row in rows if row[2] == "paper"]
        assert [row[0] for row in printed] == [row["label"] for row in source["rows"]]
        first = heads.index("i2t R@1")
        for row, expected in zip(printed, source["rows"], strict=True):
            found = [None if cell == "-" else float(cell) for cell in row[first : first + 6]]
            assert found == expected["numbers"]["flickr30k/test"]
        here = next(row for row in rows if row[2] == "here: Dataset open" and "2 seeds" in row[-1])
        paths = Path("results/try/open/two_branch_bidirectional").glob("*/record.json")
        mean = fmean(json.loads(path.read_text())["metrics"]["i2t_r10"] for path in paths)
        assert here[heads.index("i2t R@10")].startswith(f"{mean:.1f}")

    def test_latex_is_a_table_a_place(self, played, capsys):
        text = self.printed(capsys, "--table", "two_branch/4", "--format", "latex")
        assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
        text = self.printed(capsys, "--table", "two_branch/2", "--format", "latex")
        assert r"\toprule" in text and "Deep CCA" in text and "27.9" in text
        body = [line for line in text.splitlines() if line.endswith(r"\\")]
        assert len({len(re.findall(r"(?<!\\)&", line)) for line in body}) == 1

    def test_markdown_is_what_the_page_has(self, played, capsys):
        report.write_report(played)
        text = self.printed(capsys, "--table", "two_branch/2", "--format", "markdown")
        assert text in (FOLDER / "papers/two_branch.md").read_text()
        assert self.printed(capsys, "--table", "two_branch/2") == text
        assert self.printed(capsys, "--table", "open/leaderboard") in page("open")
        assert (
            self.printed(capsys, "--table", "open/claims-not-run")
            in (FOLDER / "claims.md").read_text()
        )

    @pytest.mark.parametrize("name", ["two_branch/9", "open/nothing", "", "two_branch"])
    def test_an_unknown_name_is_one_line_and_status_2(self, played, capsys, name):
        if name:
            assert asked("--table", name) == 2
            shown = capsys.readouterr()
            assert shown.out == ""
            assert shown.err.count("\n") == 1
            assert name in shown.err and "--table list" in shown.err

    def test_outside_tools_find_the_recalls_of_the_records(self, played, capsys):
        assert self.printed(capsys, "--trec", "rankings") == "rankings\n"
        assert not FOLDER.exists()
        found = {path.name for path in Path("rankings").iterdir()}
        named = {f"{one.dataset}-{one.preset}-{one.seed}" for one in cells(played)}
        expected = {f"{name}.{way}.run" for name in named for way in ("i2t", "t2i")}
        qrels = {f"{dataset}.{way}.qrels" for dataset in DATASETS for way in ("i2t", "t2i")}
        assert found == expected | qrels
        recalls = set()
        for one in cells(played):
            metrics = json.loads((Path(one.folder) / "record.json").read_text())["metrics"]
            for way in ("i2t", "t2i"):
                success = self.success(one, way)
                assert 100 * success == pytest.approx(metrics[f"{way}_r1"])
                recalls.add(success)
        assert len(recalls) > 2  # or the test could not fail

    def success(self, cell: Cell | Fusion, way: str) -> float:
        name = f"{cell.dataset}-{cell.preset}-{cell.seed}"
        qrels = ir_measures.read_trec_qrels(f"rankings/{cell.dataset}.{way}.qrels")
        run = ir_measures.read_trec_run(f"rankings/{name}.{way}.run")
        measure = ir_measures.Success @ 1
        return ir_measures.calc_aggregate([measure], qrels, run)[measure]

    def test_json_prints_the_metrics(self, played, capsys):
        text = self.printed(capsys, "--json")
        assert json.loads(text) == json.loads((FOLDER / "metrics.json").read_text())

    def test_without_arguments_the_first_page_is_named(self, played, capsys):
        assert self.printed(capsys).splitlines()[-1] == str(README)


def test_explanations_are_of_the_best_preset_that_has_any(drawn):
    board = boards.read_boards(drawn)[1]
    data = prepared_tables.read(board.dataset)
    open_picture = raw_dataset(drawn, board.dataset).pictures()
    words, *attention = explanations(board, data, open_picture)
    best = next(
        standing.row.title
        for standing in board.ranked
        if "SCAN" in standing.row.title and standing.row.fuse is None
    )
    assert words.alt.startswith(best)
    assert [one.name for one in attention] == ["attention-1", "attention-2"]
    assert attention[1].alt.endswith("open text 8")


def test_a_mistake_is_one_line_and_status_2(played, capsys):
    Path("results/try/open/scan_i2t_lse/1/record.json").unlink()
    assert asked() == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_scores_all_alike_can_be_drawn():
    alike = np.full(9, 0.5)
    panel = distributions.Panel(title="t", overlap=1.0, bound=1.0, matched=alike, unmatched=alike)
    low, high = distributions.similarities([panel]).axes[0].get_xlim()
    assert low < 0.5 < high


class TestEscaped:
    @pytest.mark.parametrize(
        "text",
        [
            HOSTILE,
            "![x](y)",
            "[a]: http://b",
            "# head",
            "- item",
            "1. item",
            "&lt; &#124;",
            "a\\|b",
            "$x^2$ :dog: @me ~~no~~ _em_",
            "---",
            "www.example.org",
            "<!-- c -->",
        ],
    )
    def test_no_construct_survives(self, text):
        shown = escaped(text)
        bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", shown)
        assert not re.search(r"[\\`*\[\]<>|~$#&@]|:\S|\b_|_\b", bare)
        assert "\n" not in shown
        assert not re.match(r"[-+=]|\d+[.)]", shown)
        assert "www." not in bare

    def test_only_marks_and_line_breaks_change(self):
        assert (
            escaped("A dog, (brown) runs - fast; it's 3 m.")
            == "A dog, (brown) runs - fast; it's 3 m."
        )
        assert re.sub(r"\\(.)", r"\1", escaped("a | b_c <i>\n\td")) == "a | b_c <i> d"

    def test_text_cannot_turn_its_surroundings_or_hold_control_characters(self):
        assert escaped("a\u202eb\x00c\x1b[0m") == "a b c \\[0m"

    def test_a_hostile_caption_keeps_the_table_whole(self):
        lines = table(["a", "b"], [[escaped(HOSTILE), "1"], ["x", "2"]], "lr").splitlines()
        assert len(lines) == 4
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {3}

    def test_code_and_alt_text_are_held_in(self):
        assert code("a`|b") == "`a  b`"
        assert picture("x](y", "p.png") == "![x\\](y](p.png)"


class TestChosen:
    def test_half_are_hits_and_both_are_spread_over_the_queries(self):
        ranks = np.array([3, 0] * 30)
        picked = chosen(ranks, each=3)
        assert [rank for _, rank in picked] == [0, 0, 0, 3, 3, 3]
        assert [query for query, _ in picked] == [11, 31, 51, 10, 30, 50]

    def test_fewer_where_there_are_fewer(self):
        assert chosen(np.array([0, 0]), each=3) == [(0, 0), (1, 0)]
        assert chosen(np.array([5]), each=3) == [(0, 5)]

"""The test split of annotations that were made elsewhere, without a season."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType

from benchmark.boards.season_boards import OWN_IMAGES
from benchmark.commands.external_scores import SPLIT
from benchmark.contracts import datasets
from benchmark.contracts.datasets import Layer, Tables
from benchmark.core.errors import UserError, redone_by
from benchmark.core.files import is_file
from benchmark.data.prepared_tables import Prepared, judged_table
from benchmark.prepare.__main__ import arranged
from benchmark.prepare.table_checks import check_rows

LEAST_COVERED = 0.5  # share of a layer's queries, below which it is not shown


def annotated(dataset: str, path: Path) -> Prepared:
    """The test split of annotations, as if prepared; of a folder that names no split,
    or one alone, all of it. Raises UserError for what cannot be read."""
    if not is_file(path):
        raise UserError(
            path,
            expected="a file of annotations",
            found="nothing",
            do="correct the path",
        )
    module = datasets.load(dataset)
    raw = path.parent
    options = _options(module, path)
    is_folder = dataset == OWN_IMAGES
    if not is_folder and path not in (files := module.inventory(raw, options)):
        raise UserError(
            path,
            expected=f"annotations as {', '.join(file.name for file in files)}",
            found=path.name,
            do="name the file so",
        )
    read = module.read_for_score if is_folder else module.read
    tables = read(raw, options)
    card = module.card(options)
    of_test = _test_tables(path, tables, card.expected_images.get(SPLIT))
    _check(of_test, path)
    declared = []
    if hasattr(module, "layers"):
        declared = module.layers(raw, of_test, options)
    layers, notes = _with_enough_queries(declared)
    images, captions = arranged(of_test)
    # with the ids that the annotations have beside those of a prepared dataset
    if tables.captions.index.name == "sentid":
        captions = captions.merge(tables.captions["caption_id"].reset_index())
    if tables.images.index.name == "imgid":
        images = images.merge(tables.images["image_id"].reset_index())
    files = images["file"]
    facts = {
        "title": card.title,
        "ways": list(card.ways),
        "folds": card.folds,
        "split": card.split,
        "counts": {SPLIT: {"images": len(images)}},
        "layers": {layer.name: {"partial": layer.partial} for layer in layers},
        "notes": (*tables.notes, *notes),
    }
    judged = {"judged": judged_table(layers)} if layers else {}
    return Prepared(
        images=images.assign(
            file=files.where(files != "", images["image_id"] + ".jpg")
        ),
        captions=captions,
        regions=of_test.regions.assign(phrase_id=""),
        card=facts,
        folder=Path(dataset),
        **judged,
    )


def _check(of_test: Tables, path: Path) -> None:
    """Raise UserError for a test split in which nothing can be searched."""
    with redone_by("score", path):
        check_rows(of_test)
    if of_test.images["group"].nunique() < 2:
        raise UserError(
            path,
            expected="test images of two groups or more, so that some answer is wrong",
            found="one",
            do="add images",
        )


def _options(module: ModuleType, path: Path) -> object:
    """The options of a reader for this file, as far as it has them."""
    given = {"with_pictures": False, "captions": path.name}
    if path.name.startswith("dataset_"):  # Karpathy's files
        given["annotations"] = "karpathy"
    names = {field.name for field in fields(module.Options)}
    return module.Options(**{name: given[name] for name in given if name in names})


def _test_tables(path: Path, tables: Tables, expected: int | None) -> Tables:
    """The images and captions of the test split. Raises UserError for another number of
    images than expected, and for none."""
    images = tables.images[tables.images["split"] == SPLIT]
    count = len(images)
    if not count or expected not in (None, count):
        raise UserError(
            path,
            expected=f"{'some' if expected is None else expected} test images",
            found=count,
            do="get the whole file",
        )
    is_of_test = tables.captions["image_id"].isin(images["image_id"])
    return replace(
        tables,
        images=images,
        captions=tables.captions[is_of_test],
        regions=tables.regions[:0],
    )


def _with_enough_queries(layers: Sequence[Layer]) -> tuple[list[Layer], list[str]]:
    """The layers whose queries are here, and what is said of those that lack some:
    numbers of a few queries would be read as those of the layer."""
    kept = []
    notes = []
    for layer in layers:
        covered = layer.covered
        least = 1.0
        counts = []
        for way, count in layer.named.items():
            queries = covered.get(way, 0)
            least = min(least, queries / count)
            counts.append(f"{queries:,} of {count:,} {way}")
        coverage = f"{layer.name}: {', '.join(counts)} queries are in this test split"
        if least >= LEAST_COVERED:
            kept.append(layer)
        else:
            coverage += f"; left out below {LEAST_COVERED:.0%}"
        if least < 1:
            notes.append(coverage)
    return kept, notes

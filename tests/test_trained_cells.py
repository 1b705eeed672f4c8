"""Trained cells as they are evaluated: which trainings a fusion takes, and what a
record says of their features."""

import pytest
from refusals import refused
from tiny_cells import cell_of, enter, evaluated, fusion_of, params_of, train_cell

from benchmark.core.records import Aspect
from benchmark.data.prepared_tables import read
from benchmark.evaluate.trained_cells import trained_cells


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("two_branch", [Aspect.IMAGE_NETWORK, Aspect.TEXT_VECTORS]),
        ("pixels", [Aspect.IMAGE_NETWORK, Aspect.WORD_VECTORS]),
    ],
)
def test_a_record_tells_where_its_features_differ_from_the_papers(kind, expected):
    cell = cell_of(kind).model_copy(update={"network": "vgg19"})
    train_cell(cell)
    departures = evaluated(cell).departures
    assert [departure.aspect for departure in departures] == expected
    assert (departures[0].here, departures[0].in_paper) == ("drawn_cnn", "vgg19")


def test_neighbouring_parts_of_a_training_are_one_member():
    parted, other = cell_of("two_scores"), cell_of("scan", folder="data/cells/b")
    for cell in (parted, other):
        train_cell(cell)
    cells = {cell.folder: cell for cell in (parted, other)}
    fused = fusion_of(
        parted, parted, other, parted, parts=("first", "second", "", "first")
    )
    tables = read("tiny").sha256
    members = trained_cells(params_of(cells=cells), fused, tables)
    named = [(member.cell.folder, member.parts) for member in members]
    assert named == [
        (parted.folder, ("first", "second")),
        (other.folder, ("",)),
        (parted.folder, ("first",)),
    ]


def test_a_fusion_of_what_was_not_trained_is_refused():
    fused = fusion_of(cell_of("scan"))
    with refused("trained cell", found="no such key"):
        trained_cells(params_of(cells={}), fused, tables="")
    with refused("data/checkpoints/a.pt", "a checkpoint", "nothing"):
        trained_cells(params_of(), cell_of("scan"), tables="")

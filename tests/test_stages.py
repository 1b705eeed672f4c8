"""What a stage is: how it stands in dvc.yaml, who does it, and what comes first."""

from importlib import import_module

import pytest

from benchmark.season.stages import Group, Kind, Stage, in_order, program_of


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_has_a_program_that_can_be_configured_and_run(kind):
    module = import_module(program_of(kind).module)
    assert callable(module.main)
    assert callable(module.configure)


def stage_of(name: str, *reads: str, writes: tuple[str, ...] = ()) -> Stage:
    outputs = {path: {} for path in writes or (f"made/{name}",)}
    return Stage(name=name, kind=Kind.TRAIN, reads=reads, writes=outputs)


def test_dvc_reads_what_a_stage_says_and_no_empty_lists():
    stage = Stage(
        name="train@a",
        kind=Kind.TRAIN,
        arguments=("a", "--season", "s"),
        settings={"versions.yaml": ["train"], "cells.yaml": ["cells.a"]},
        writes={"a.pt": {}, "a.json": {"cache": False}},
    )
    assert stage.in_dvc == {
        "cmd": "python -m benchmark.train a --season s",
        "params": [{"versions.yaml": ["train"]}, {"cells.yaml": ["cells.a"]}],
        "outs": ["a.pt", {"a.json": {"cache": False}}],
    }


def of_item(key: str, fields: dict[str, str]) -> Stage:
    inside = fields.get("inside", key)
    return stage_of(f"each@{key}", writes=(f"made/{inside}.pt",))


def test_a_group_is_written_once_with_its_items():
    items = {"a": {"inside": "x/a"}, "b": {"inside": "x/b"}}
    group = Group(name="each", items=items, stage=of_item)
    assert [stage.outputs for stage in group.stages] == [
        ["made/x/a.pt"],
        ["made/x/b.pt"],
    ]
    assert group.in_dvc["foreach"] == items
    assert group.in_dvc["do"]["outs"] == ["made/${item.inside}.pt"]


def test_keys_alone_are_a_list_of_items():
    group = Group(name="each", items={"a": {}, "b": {}}, stage=of_item)
    assert group.in_dvc["foreach"] == ["a", "b"]
    assert group.in_dvc["do"]["outs"] == ["made/${item}.pt"]


def test_a_stage_comes_after_those_that_write_what_it_reads_and_no_other_is_named():
    listed = [
        stage_of("last", "made/first", "folder"),
        stage_of("in a folder", writes=("folder/file",)),
        stage_of("unneeded", writes=("folder_2/file",)),
        stage_of("first", "raw"),
    ]
    stages = {stage.name: stage for stage in listed}
    ordered = in_order(stages, ["last"])
    assert list(ordered) == ["first", "in a folder", "last"]
    assert ordered["last"] == ("first", "in a folder")
    assert ordered["first"] == ()

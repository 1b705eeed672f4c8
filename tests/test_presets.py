"""The presets beside the methods: rows of tables, each a training of its own or a fusion."""

import pytest

from benchmark.contracts.methods import load
from benchmark.core.errors import UserError
from benchmark.features import load as load_encoder
from benchmark.season import plugins
from benchmark.season.plugins import Fuse, configured, needs, presets
from seasons import FUSION, SCAN, staged_presets


def test_what_a_preset_needs_comes_before_it(tmp_path):
    known = staged_presets(tmp_path)
    assert needs("first", known) == ["first"]
    assert needs("second", known) == ["first", "second"]
    assert needs("parts", known) == ["first", "second", "parts"]  # the member once, and its start
    assert needs("three", known) == ["first", "second", "three"]
    assert needs(FUSION, known) == [SCAN, "scan_i2t_lse", FUSION]


@pytest.mark.parametrize("members", [[], ["first"] * 4])
def test_a_fusion_has_one_to_three_members(members):
    with pytest.raises(ValueError, match="at (least 1|most 3) item"):
        Fuse(how="average", of=members)


def test_presets_have_unique_titles():
    rows = presets()
    assert len({row.title for _, row in rows.values()}) == len(rows), "a title stands for one row"


def test_no_two_presets_are_the_same_training():
    """Two names for the same options would be trained twice and could carry different numbers."""
    played = {}
    for name, (method, row) in presets().items():
        if not row.fuse:
            config = configured(load(method), row.options, name)
            same = (method, config, row.network, row.sentence, row.start, row.grid)
            assert played.setdefault(same, name) == name


@pytest.mark.parametrize("name", presets())
def test_presets_are_made_of_presets(name):
    rows = presets()
    method, row = rows[name]
    assert not (row.fuse and (row.options or row.start or row.grid))
    for member in row.fuse.of if row.fuse else []:
        preset, _, part = member.partition(":")
        trained = rows[preset][1]
        assert not trained.fuse
        if row.fuse.how == "weighted" and member == row.fuse.of[1]:
            takes = load(rows[preset][0]).inputs(load(rows[preset][0]).Config())
            assert takes.image == "proposals" and len(row.fuse.of) == 2
            continue
        assert rows[preset][0] == method
        assert (trained.network, trained.sentence) == (row.network, row.sentence)
        assert not part or hasattr(load(method).Model, "scores")
    if row.start:
        assert rows[row.start][0] == method and not rows[row.start][1].fuse
    if row.sentence:
        assert load_encoder(row.sentence).encode
    if not row.fuse:
        takes = load(method).inputs(configured(load(method), row.options, name))
        assert (takes.text in ("sentence", "phrase")) == bool(row.sentence)


def test_a_preset_in_two_files_is_refused(tmp_path, monkeypatch):
    (tmp_path / "methods").mkdir()
    for file in ("a", "b"):
        (tmp_path / "methods" / f"{file}.yaml").write_text("same: {title: Same}\n")
    monkeypatch.setattr(plugins, "PACKAGE_ROOT", tmp_path)
    with pytest.raises(UserError) as error:
        presets()
    assert error.value.where == "methods/b.yaml: preset 'same'"
    assert "methods/a.yaml" in error.value.found


def test_a_mistake_in_a_preset_is_refused_with_the_place(tmp_path, monkeypatch):
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods/a.yaml").write_text("one: {title: One, fuze: {}}\n")
    monkeypatch.setattr(plugins, "PACKAGE_ROOT", tmp_path)
    with pytest.raises(UserError) as error:
        presets()
    assert error.value.where == "methods/a.yaml: one: fuze" and "fuse" in error.value.expected

"""Methods and their options, and the presets beside them: rows of tables, each a
training of its own or a fusion."""

from dataclasses import fields

import pytest
from refusals import refused

from benchmark.contracts.methods import load
from benchmark.core.errors import UserError
from benchmark.features import load as load_encoder
from benchmark.season import plugins
from benchmark.season.plugins import Fuse, Preset, configured, method_of, needs, presets


@pytest.mark.parametrize("members", [[], ["first"] * 4])
def test_a_fusion_has_one_to_three_members(members):
    with pytest.raises(ValueError, match="at (least 1|most 3) item"):
        Fuse(how="average", of=members)


def test_no_two_presets_have_one_title_or_are_the_same_training():
    rows, played = presets(), {}
    assert len({row.title for _, row in rows.values()}) == len(rows)
    for name, (method, row) in rows.items():
        if not row.fuse:
            config = configured(load(method), row.options, name)
            same = (method, config, row.network, row.sentence, row.start, row.grid)
            assert played.setdefault(same, name) == name


ROWS = presets()


@pytest.mark.parametrize("name", ROWS)
def test_presets_are_made_of_presets(name):
    method, row = ROWS[name]
    assert not (row.fuse and (row.options or row.start or row.grid))
    for member in row.fuse.of if row.fuse else []:
        preset, _, part = member.partition(":")
        trained = ROWS[preset][1]
        assert not trained.fuse
        if row.fuse.how == "weighted" and member == row.fuse.of[1]:
            takes = load(ROWS[preset][0]).inputs(load(ROWS[preset][0]).Config())
            assert takes.image == "proposals" and len(row.fuse.of) == 2
            continue
        assert ROWS[preset][0] == method
        assert (trained.network, trained.sentence) == (row.network, row.sentence)
        assert not part or hasattr(load(method).Model, "scores")
    if row.start:
        assert ROWS[row.start][0] == method and not ROWS[row.start][1].fuse
    if row.sentence:
        assert load_encoder(row.sentence).encode
    if not row.fuse:
        takes = load(method).inputs(configured(load(method), row.options, name))
        assert (takes.text in ("sentence", "phrase")) == bool(row.sentence)


def test_a_preset_in_two_files_and_a_mistake_are_refused_with_the_place(
    tmp_path, monkeypatch
):
    (tmp_path / "methods").mkdir()
    monkeypatch.setattr(plugins, "HOME", tmp_path)
    for file in ("a", "b"):
        (tmp_path / "methods" / f"{file}.yaml").write_text("same: {title: Same}\n")
    with refused("methods/b.yaml: preset 'same'", found="methods/a.yaml"):
        presets.__wrapped__()
    (tmp_path / "methods/b.yaml").write_text("one: {title: One, fuze: {}}\n")
    with refused("methods/b.yaml: one: fuze", "fuse"):
        presets.__wrapped__()


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"start": "bb"}, "did you mean b?"),
        ({"start": "a"}, "a, which needs a"),
        ({"start": "c"}, "a, which needs c"),
        ({"start": "both"}, "both, a fusion"),
        ({"fuse": Fuse(how="average", of=["bb:part"])}, "did you mean b?"),
        ({"fuse": Fuse(how="average", of=["a", "b"])}, "a, which needs a"),
        ({"fuse": Fuse(how="average", of=["b", "both"])}, "both, a fusion"),
    ],
)
def test_a_preset_needs_others_with_trainings(changes, found):
    both = Fuse(how="average", of=["b", "c"])
    rows = {
        "a": Preset(title="A", **changes),
        "b": Preset(title="B"),
        "c": Preset(title="C", start="a"),
        "both": Preset(title="Both", fuse=both),
    }
    known = {name: ("vse", row) for name, row in rows.items()}
    with refused("preset", expected="trainings", found=found):
        needs("a", known)


# Methods by name and path, and their options ------------------------------------------


def test_lines_within_strings_are_code_and_blank_ones_elsewhere_are_not(tmp_path):
    digests = []
    for text in ('x = """a\n\nb"""\n', 'x = """a\nb"""\n', 'x = """a\n \nb"""\n'):
        for between in ("", "\n\n"):
            path = tmp_path / "mine.py"
            path.write_text(f"{text}{between}y = 1\n")
            digests.append(plugins.plugin_digest(path))
    assert digests[::2] == digests[1::2] and len(set(digests)) == 3


def test_files_beside_a_plugin_are_looked_for_there(tmp_path, monkeypatch):
    monkeypatch.setattr(plugins, "HOME", tmp_path)
    texts = {
        "own/mine.py": "from benchmark.contracts.methods import theirs\n",
        "own/layers.py": "",
        "methods/theirs.py": "import layers\n",
        "methods/layers.py": "",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    found = plugins.code_files(tmp_path / "own/mine.py")
    names = {path.relative_to(tmp_path.resolve()).as_posix() for path in found}
    assert names == texts.keys() - {"own/layers.py"}


def test_unknown_option_is_refused_with_the_valid_ones():
    method = load("vse")
    with pytest.raises(UserError) as error:
        configured(method, {"lamda2": 1.0}, "preset mine")
    assert error.value.where == "preset mine: option 'lamda2'"
    assert all(field.name in error.value.expected for field in fields(method.Config))


@pytest.mark.parametrize(
    ("method", "options", "option", "expected", "found"),
    [
        ("scan", {"margin": "wide"}, "margin", "a valid number", "'wide'"),
        ("scan", {"direction": "up"}, "direction", "t2i or i2t", "'up'"),
        ("dual_path", {"stage": 3}, "stage", "1 or 2", "3"),
        (
            "two_branch_embedding",
            {"lambda4": 0.05},
            "lambda4",
            "neighbourhood_sampling",
            "0.05",
        ),
        (
            "cyclematch",
            {"scaling": "none"},
            "scaling",
            "one of common, component",
            "'none'",
        ),
        ("vse_infinity", {"position_size": 5}, "position_size", "an even number", "5"),
    ],
)
def test_wrong_values_are_refused_with_their_option(
    method, options, option, expected, found
):
    with pytest.raises(UserError) as error:
        configured(load(method), options, "preset p")
    assert error.value.where == f"preset p: {option}"
    assert expected in error.value.expected and error.value.found == found


def test_names_are_checked():
    for name in ("nothing", "scan/../x", "shared", "losses", "__init__"):
        with pytest.raises(ValueError, match="no method .*expected one of .*scan"):
            load(name)
        with pytest.raises(UserError) as error:
            method_of(name)
        assert (
            error.value.where == f"method {name!r}" and "scan" in error.value.expected
        )

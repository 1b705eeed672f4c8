"""From a season file to its cells, feature sets and fusions."""

from types import SimpleNamespace

import pytest

from benchmark.contracts.methods import load
from benchmark.core.errors import UserError
from benchmark.season import resolving
from benchmark.season.parameter_files import season_names
from benchmark.season.parameters import (
    SAMPLES,
    ImageEncoder,
    Params,
    Season,
    SentenceEncoder,
)
from benchmark.season.plugins import Fuse, Preset, configured
from benchmark.season.resolving import resolve
from seasons import (
    SCAN,
    TWO_BRANCH,
    committed,
    known_with,
    season,
    staged_presets,
    with_dataset,
)

Known = dict[str, tuple[str, Preset]]


@pytest.fixture
def staged(tmp_path, monkeypatch) -> Known:
    monkeypatch.chdir(tmp_path)
    return staged_presets(tmp_path)


def refused(season: Season, known: Known | None = None) -> UserError:
    with pytest.raises(UserError) as error:
        resolve("try", season, known)
    assert error.value.do
    return error.value


def by_folder(params: Params) -> dict:
    return {
        feature_set.folder: feature_set for feature_set in params.feature_sets.values()
    }


# Cells --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", season_names())
def test_every_season_resolves_to_cells_that_can_be_configured(name):
    params = committed(name)
    assert params.cells
    for key, cell in params.cells.items():
        configured(load(cell.method), cell.options, key)
    trained = {cell.folder for cell in params.cells.values()}
    assert {f for fusion in params.fusions.values() for f in fusion.members} <= trained
    starts = {cell.start for cell in params.cells.values() if cell.start}
    assert starts <= {cell.checkpoint for cell in params.cells.values()}


# Feature sets -------------------------------------------------------------------------


def test_feature_sets_are_those_that_the_cells_read():
    params = resolve("try", season())
    assert set(params.feature_sets) == {
        "drawn-drawn_cnn_96_g4_flip_std",
        "drawn-words_trained300",
        "drawn-hglmm_words_trained300",
        "folder-mobilenet_v2_64_g2",
        "folder-words_trained20",
        "folder-hglmm_50_std_words_trained20",
    }
    drawn = params.feature_sets["drawn-drawn_cnn_96_g4_flip_std"]
    assert (drawn.kind, drawn.encoder, drawn.dataset) == (
        "pictures",
        "drawn_cnn",
        "drawn",
    )
    assert (drawn.reader, params.feature_sets["folder-words_trained20"].reader) == (
        *("shapes", "folder"),
    )
    assert params.feature_sets["folder-mobilenet_v2_64_g2"].encoder == "torchvision_cnn"
    words = params.feature_sets["folder-words_trained20"]
    assert (words.kind, words.encoder, words.words.size) == ("words", "word2vec", 20)
    text = params.feature_sets["folder-hglmm_50_std_words_trained20"]
    assert (text.kind, text.encoder, text.sentence.size) == ("sentences", "hglmm", 50)
    assert text.source == words.folder == "data/features/folder/words_trained20"
    assert (
        drawn.source == words.source.replace("folder", "drawn") == "data/prepared/drawn"
    )
    made = {feature_set.folder for feature_set in params.feature_sets.values()}
    read = {f for c in params.cells.values() for f in (c.images, c.texts, c.words) if f}
    assert (
        read
        | {e.source for e in params.feature_sets.values() if "features" in e.source}
        == made
    )
    only_words = resolve("try", season(presets=[SCAN]))
    assert {feature_set.kind for feature_set in only_words.feature_sets.values()} == {
        "pictures"
    }


def test_features_of_a_network_may_stand_beside_it_and_more_regions_be_needed(staged):
    image = ImageEncoder(
        network="squeezenet1_1", features="squeezenet1_1.npy", pixels=64
    )
    params = resolve(
        "try", with_dataset(season(presets=[SCAN]), "folder", image=image), staged
    )
    taken = by_folder(params)[params.cells[f"folder-{SCAN}-0"].images].image
    assert (taken.network, taken.features, taken.pixels) == (
        "squeezenet1_1",
        "squeezenet1_1.npy",
        0,
    )
    known = staged | {"fine": ("scan", Preset(title="Fine", grid=7))}
    params = resolve("try", season(presets=[SCAN, "fine"]), known)
    assert (
        params.cells["folder-fine-0"].images
        == "data/features/folder/mobilenet_v2_64_g7"
    )
    assert (
        params.cells[f"folder-{SCAN}-0"].images
        == "data/features/folder/mobilenet_v2_64_g2"
    )
    assert params.feature_sets["folder-mobilenet_v2_64_g7"].image.grid == 7


def test_the_network_of_the_paper_may_be_asked_for(staged):
    on = with_dataset(
        season(presets=["first", "second", SCAN]),
        "folder",
        image=ImageEncoder(network="as in paper", pixels=64),
        features={"bottom_up": "precomp"},
    )
    params = resolve("try", on, staged)
    feature_sets = by_folder(params)
    first, second, scan = (
        params.cells[f"folder-{p}-0"] for p in ("first", "second", SCAN)
    )
    assert feature_sets[first.images].image.network == "resnet50"
    assert feature_sets[first.images].image.features is None
    assert second.backbone == "torchvision_cnn"
    of_scan = feature_sets[scan.images].image
    assert (of_scan.network, of_scan.features, of_scan.pixels) == (
        "bottom_up",
        "precomp",
        0,
    )
    assert scan.images.endswith("bottom_up_224_g6_flip_imported")
    known = staged | {"nameless": ("scan", Preset(title="Nameless"))}
    error = refused(on.model_copy(update={"presets": ["nameless"]}), known)
    assert error.where == "season try: datasets.folder: network: as in paper"
    assert "Nameless" in error.expected


# Which presets and seeds --------------------------------------------------------------


def test_a_dataset_may_have_some_of_the_presets_and_costly_ones_fewer_seeds(staged):
    some = with_dataset(
        season(presets=["first", "second", SCAN]), "folder", presets=["scan_*"]
    )
    params = resolve("try", some, staged)
    assert {c.preset for c in params.cells.values() if c.dataset == "folder"} == {SCAN}
    assert len({c.preset for c in params.cells.values() if c.dataset == "drawn"}) == 3
    some = with_dataset(some, "drawn", presets=["!scan_*"])
    params = resolve("try", some, staged)
    assert [c.preset for c in params.cells.values() if c.dataset == "drawn"] == [
        *("first", "first", "second", "second")
    ]
    error = refused(with_dataset(some, "folder", presets=["second"]), staged)
    assert error.where == "season try: second"
    assert error.expected.startswith("first, which it needs, on folder")
    of = {"*st": [0], "staged.py": [0, 3], "sec*": [0]}
    params = resolve(
        "try", season(presets=["first", "second", SCAN], seeds_of=of), staged
    )
    played = {(cell.preset, cell.seed) for cell in params.cells.values()}
    assert played == {("first", 0), ("second", 0), (SCAN, 0), (SCAN, 3)}
    of = {"staged.py": [5]}
    wider = resolve("try", season(presets=["first", "second"], seeds_of=of), staged)
    assert {cell.seed for cell in wider.cells.values()} == {5}


# Options ------------------------------------------------------------------------------


def test_what_methods_take_is_asked_again_under_another_contract(tmp_path, monkeypatch):
    before, again, after = {}, {}, {}
    for remembered in (before, again):
        resolve("try", season(), remembered=remembered)
    (tmp_path / "contract.py").write_text("")
    other = SimpleNamespace(__file__=str(tmp_path / "contract.py"))
    monkeypatch.setattr(resolving, "contract", other)
    resolve("try", season(), remembered=after)
    assert before.keys() == again.keys() and len(after) == len(before) > 0
    assert before.keys().isdisjoint(after)


def test_samples_for_pages_are_of_the_first_seed():
    params = resolve("try", season(pages=[SCAN], seeds=[3, 1]))
    keeps = {seed: params.cells[f"drawn-{SCAN}-{seed}"].keeps for seed in (3, 1)}
    assert (SAMPLES in keeps[3], SAMPLES in keeps[1]) == (True, False)


def test_options_of_the_season_go_over_those_of_the_preset():
    options = {
        "scan": {"epochs": 4, "lambda1": 1.0, "margin": 0.1},
        SCAN: {"epochs": 2, "pooling": "lse"},
    }
    params = resolve("try", season(options=options))
    cell = params.cells["drawn-scan_t2i_avg-0"]
    assert cell.options == {
        "direction": "t2i",  # the preset's
        "pooling": "lse",  # the preset's "avg", then the season's for the preset
        "lambda1": 1.0,  # the preset's 9.0, then the season's for the method
        "margin": 0.1,
        "epochs": 2,  # the season's for the method, then for the preset
    }
    assert cell.scaled == ["epochs", "lambda1", "margin", "pooling"]
    other = params.cells["drawn-two_branch_single-0"]
    assert (other.options, other.scaled) == ({"lambda2": 0.0}, [])


def test_what_papers_set_otherwise_on_a_dataset_is_no_cut_of_the_budget():
    changes = {"scan": {"epochs": 20, "margin": 0.3}, SCAN: {"lambda1": 5.0}}
    on = with_dataset(
        season(options={"scan": {"margin": 0.1}}), "folder", changes=changes
    )
    params = resolve("try", on)
    there, elsewhere = (
        params.cells[f"{name}-{SCAN}-0"] for name in ("folder", "drawn")
    )
    assert there.options["epochs"] == 20 and there.options["lambda1"] == 5.0
    assert there.options["margin"] == 0.1 and there.scaled == elsewhere.scaled == [
        "margin"
    ]
    assert "epochs" not in elsewhere.options and elsewhere.options["lambda1"] == 9.0
    error = refused(with_dataset(on, "folder", changes={"cyclemash": {}}))
    assert error.where == "season try: datasets.folder.changes.cyclemash"
    assert error.found == "'cyclemash' (did you mean cyclematch?)"


def test_a_fusion_is_of_scores_that_its_members_have_here():
    options = {"cyclematch": {"variant": "latent"}}
    tried = season(presets=["cyclematch_adaptive"])
    scaled = tried.model_copy(update={"options": options})
    for wrong in (scaled, with_dataset(tried, "folder", changes=options)):
        error = refused(wrong)
        assert error.where == "season try: cyclematch_adaptive"
        assert error.expected.endswith("cyclematch: latent")
    known = known_with(
        parts=Preset(title="P", fuse=Fuse(how="average", of=["cyclematch:sound"]))
    )
    error = refused(season(presets=["parts", "cyclematch"]), known)
    assert error.where == "season try: parts"
    assert error.expected.endswith("cyclematch: visual, textual, latent")


def test_an_option_or_encoder_that_is_none_is_refused_before_anything_runs(staged):
    error = refused(season(presets=["first"], options={"f*": {"epoch": 5}}), staged)
    assert (
        error.where == "preset first: option 'epoch'"
        and "one of stage" in error.expected
    )
    # Its module would be looked for hours later, and misspelt settings would count for
    # nothing.
    tried = {f"sentence_of.{TWO_BRANCH}": season(sentence_of={TWO_BRANCH: "hglm"})}
    for field in ("sentence", "phrases"):
        settings = {field: {"hglm": SentenceEncoder()}}
        tried[f"datasets.folder.{field}.hglm"] = with_dataset(
            season(), "folder", **settings
        )
    for where, wrong in tried.items():
        error = refused(wrong)
        assert (
            error.where == f"season try: {where}"
            and "(did you mean hglmm?)" in error.found
        )
        assert (
            error.expected == "one of bilstm_max, hglmm, mean_words, tfidf, transformer"
        )


# Fusions ------------------------------------------------------------------------------


def test_a_fusion_may_be_of_parts_of_scores(staged):
    params = resolve(
        "try", season(presets=["first", "second", "parts", "three"]), staged
    )
    first, second = (f"data/cells/try/drawn/{name}/0" for name in ("first", "second"))
    parts, three = (params.fusions[f"drawn-{name}-0"] for name in ("parts", "three"))
    assert (parts.how, parts.members) == ("adaptive", [second, second])
    assert parts.parts == ["visual", "textual"]
    assert (three.members, three.parts) == ([first, second, second], ["", "", "latent"])


def test_a_fusion_of_different_tasks_is_refused():
    tasks = {
        "average": "retrieval",
        "adaptive": "retrieval",
        "weighted": "localisation",
    }
    for how, members in (
        ("average", ["cca_phrases", "two_branch_phrase_augmented"]),
        ("adaptive", [TWO_BRANCH, "cca_phrases"]),
        ("weighted", ["two_branch_phrase_augmented"]),
        ("weighted", ["two_branch_phrase_augmented", TWO_BRANCH]),
        ("weighted", [TWO_BRANCH, SCAN]),
    ):
        known = known_with(mixed=Preset(title="Mixed", fuse=Fuse(how=how, of=members)))
        error = refused(season(presets=["mixed", *members]), known)
        assert error.where == "season try: mixed"
        if len(members) == 2:
            assert (
                error.expected == f"presets of retrieval, {tasks[how]} for how: {how}"
            )


def test_what_an_encoder_was_trained_on_names_datasets_and_changes_no_cell():
    settings = {"transformer": SentenceEncoder(weights="nets/mine")}
    plain = with_dataset(season(), "folder", sentence=settings)
    told = plain.model_copy(update={"trained_on": {"mine": ["flickr30k", "folder"]}})
    params = resolve("try", told)
    assert params.trained_on == {"mine": ["flickr30k", "folder"]}
    without = resolve("try", plain)
    assert params.cells == without.cells
    assert params.feature_sets == without.feature_sets
    for wrong, where, meant in (
        ({"mime": ["flickr30k"]}, "trained_on", "mine"),
        ({"mine": ["flikr30k"]}, "trained_on.mine", "flickr30k"),
    ):
        error = refused(plain.model_copy(update={"trained_on": wrong}))
        assert error.where == f"season try: {where}"
        assert f"(did you mean {meant}?)" in error.found

"""Sentence vectors and vectors of tokens of BERT-like encoders, against the library
itself."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import feature_files
import numpy as np
import pytest
import tiny_cells
import torch
import yaml
from refusals import refused

from benchmark.__main__ import main
from benchmark.commands import query
from benchmark.data import prepared_tables
from benchmark.encode import __main__ as encode
from benchmark.evaluate.trained_cells import model_on_split, trained_cell
from benchmark.features import drawn_cnn, transformer
from benchmark.scoring import inputs, model_scores
from benchmark.season.parameters import FeatureSet, Season, SentenceEncoder
from benchmark.season.plugins import ConfiguredMethod
from benchmark.season.resolving import resolve
from seasons import ROOT, params_of

pytest.importorskip("transformers")
REAL = feature_files.WEIGHTS / "all-MiniLM-L6-v2"
TEXTS = [
    "A red circle is above the green square.",
    "a small triangle",
    "the zebra",
    "",
    "A large blue square is left of a small red circle, below the green triangle",
    *(
        f"{colour} {thing}"
        for colour in ("red", "green", "blue")
        for thing in ("circle", "square")
    ),
]


@pytest.fixture(params=["tiny", "MiniLM"])
def folder(request, tmp_path):
    if request.param == "tiny":
        return feature_files.bert(tmp_path / "bert")
    if not REAL.is_dir():
        pytest.skip(f"{REAL} is not there")
    return REAL


def settings_of(folder: Path, **changes: object) -> SentenceEncoder:
    return SentenceEncoder(weights=str(folder), **changes)


def encoded(folder: Path, texts: list[str]) -> np.ndarray:
    return transformer.encode(
        texts, np.ones(len(texts), bool), None, settings_of(folder)
    )[0]


def tokens_of(folder: Path, text: str) -> np.ndarray:
    """(L, F), by the library's own tokeniser and model."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    longest = min(model.config.max_position_embeddings, transformer.LONGEST)
    fed = tokenizer([text], truncation=True, max_length=longest, return_tensors="pt")
    with torch.no_grad():
        states = model(
            input_ids=fed["input_ids"], attention_mask=fed["attention_mask"]
        )[0]
    return states[0][fed["attention_mask"][0].bool()].numpy()


def test_a_sentence_is_the_mean_of_its_tokens_as_the_library_has_them(folder):
    found = encoded(folder, TEXTS)
    for text, vector in zip(TEXTS, found, strict=True):
        np.testing.assert_allclose(
            vector, tokens_of(folder, text).mean(0), rtol=0, atol=1e-5
        )
    ends, size, blocks, facts = transformer.contexts(TEXTS, settings_of(folder))
    assert size == found.shape[1] and facts["weights"] == folder.name
    seen = {
        int(c): states[n].numpy() for c_n, states in blocks for n, c in enumerate(c_n)
    }
    lengths = np.diff(ends, prepend=0)
    for c, text in enumerate(TEXTS):
        assert len(seen[c]) == lengths[c]
        np.testing.assert_allclose(seen[c], tokens_of(folder, text), rtol=0, atol=1e-5)


def test_the_bytes_do_not_hang_on_the_company(folder):
    whole = encoded(folder, TEXTS)
    for order in (slice(None), slice(4, None, -1), slice(7, 8)):
        assert np.array_equal(encoded(folder, TEXTS[order]), whole[order])
    # more than a batch
    assert np.array_equal(encoded(folder, TEXTS[5:] * 9)[6:12], whole[5:])


def test_half_precision_and_longer_texts_are_read(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = feature_files.bert(tmp_path / "bert")
    path, before = folder / "model.safetensors", encoded(folder, TEXTS)
    save_file({k: v.half() for k, v in load_file(path).items()}, path, {"format": "pt"})
    after = encoded(folder, TEXTS)
    assert after.dtype == np.float32 and 0 < np.abs(after - before).max() < 0.02
    long = "red circle " * 90
    np.testing.assert_allclose(
        encoded(folder, [long])[0], tokens_of(folder, long).mean(0), rtol=0, atol=1e-5
    )


def test_a_text_without_tokens_is_zero(tmp_path):
    folder = feature_files.bert(tmp_path / "bert")
    facts = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps(facts | {"post_processor": None}))
    vectors = encoded(folder, ["", "red"])
    assert not vectors[0].any() and vectors[1].any()
    ends, _, blocks, _ = transformer.contexts(["", "red"], settings_of(folder))
    assert ends.tolist() == [1, 2] and [rows.tolist() for rows, _ in blocks] == [[1]]


# What is refused ----------------------------------------------------------------------


@pytest.mark.parametrize("name", transformer.FILES)
def test_a_missing_or_damaged_file_is_named(name, tmp_path):
    folder = feature_files.bert(tmp_path / "bert")
    (folder / name).write_bytes(b"x" * 90)
    with refused(folder, "an encoder", "something else"):
        encoded(folder, TEXTS)
    (folder / name).unlink()
    with refused(folder / name, "model.safetensors", "nothing", "--weights-dir"):
        encoded(folder, TEXTS)
    with refused("transformer: size", "12", "13"):
        whole = feature_files.bert(tmp_path / "whole")
        transformer.encode(TEXTS, None, None, settings_of(whole, size=13))


def test_weights_that_lack_tensors_or_are_no_numbers_are_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = feature_files.bert(tmp_path / "bert")
    path = folder / "model.safetensors"
    state, layer = load_file(path), "encoder.layer.1.output.dense.weight"
    bare = {
        name: value for name, value in state.items() if not name.startswith("pooler.")
    }
    save_file(bare, path, {"format": "pt"})
    encoded(folder, TEXTS)
    without = {name: value for name, value in state.items() if name != layer}
    of_nan = state | {layer: torch.full_like(state[layer], torch.nan)}
    for wrong, found in ((without, layer), (of_nan, "NaN")):
        save_file(wrong, path, {"format": "pt"})
        with refused(folder, found=found):
            encoded(folder, TEXTS)


def test_a_tokeniser_of_another_network_is_refused(tmp_path):
    folder = feature_files.bert(tmp_path / "bert", vocab_size=5)
    with refused(folder, "tokeniser", "something else"):
        encoded(folder, TEXTS)


def test_code_of_the_folder_and_pickles_are_not_run(tmp_path):
    folder = feature_files.bert(tmp_path / "bert")
    (folder / "evil.py").write_text("open('run', 'w')\nclass M: pass\nclass C: pass\n")
    config = json.loads((folder / "config.json").read_text()) | {
        "model_type": "unheard_of"
    }
    config["auto_map"] = {"AutoConfig": "evil.C", "AutoModel": "evil.M"}
    (folder / "config.json").write_text(json.dumps(config))
    with refused(folder, found="something else"):
        encoded(folder, TEXTS)
    assert not Path("run").exists()
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with refused(folder / "model.safetensors", found="nothing"):
        encoded(folder, TEXTS)


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    folder = feature_files.bert(tmp_path / "bert")
    monkeypatch.setattr(transformer, "find_spec", lambda name: None)
    with refused(
        "transformer", "the library transformers", do="rematch-benchmark[transformers]"
    ):
        encoded(folder, TEXTS)


def test_other_encoders_import_no_transformers():
    code = "import sys; from benchmark.commands import doctor, init; from benchmark import features"
    code += "; assert not {'transformers', 'timm'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


# Folders, trainings, questions --------------------------------------------------------


def feature_set(
    folder: Path, kind: str, slug: str = "vectors", **changes: object
) -> FeatureSet:
    names = {
        "dataset": "tiny",
        "reader": "tiny",
        "encoder": "transformer",
        "kind": kind,
    }
    at = {"folder": f"data/features/tiny/{slug}", "source": "data/prepared/tiny"}
    return FeatureSet(**names, **at, sentence=settings_of(folder, **changes))


def tokens_cell():
    return tiny_cells.cell_of("pooled_tokens")


@pytest.fixture
def tiny_encoder(tmp_path, monkeypatch):
    folder = feature_files.bert(tmp_path / "bert")
    tiny_cells.enter(tmp_path, monkeypatch)
    return folder


def test_tokens_lie_one_after_another_and_are_padded_by_the_batch(tiny_encoder):
    data = prepared_tables.read("tiny")
    encode.contexts(feature_set(tiny_encoder, "contexts"), data)
    stored, ends = (
        np.load(f"data/features/tiny/vectors/{n}.npy") for n in ("contextual", "ends")
    )
    texts = data.captions["text"].tolist()
    whole = np.concatenate([tokens_of(tiny_encoder, text) for text in texts])
    assert (
        stored.dtype == np.float16
        and stored.shape == whole.shape
        and ends[-1] == len(whole)
    )
    np.testing.assert_allclose(stored, whole, atol=2e-3)
    card = json.loads(Path("data/features/tiny/vectors/card.json").read_text())
    # no path of this machine
    assert card["settings"]["weights"] == card["weights"] == "bert"
    takes = ConfiguredMethod.of(tokens_cell()).takes
    val = data.split("val")
    split = inputs.split_inputs(
        data, val, tokens_cell(), takes, None, torch.device("cpu")
    )
    rows = val.caption_rows
    chosen = [4, 0, 2]
    captions = split.captions_at(torch.tensor(chosen))
    again = split.chosen(torch.arange(len(split.images)).flip(0), torch.tensor(chosen))
    torch.testing.assert_close(again.captions_at(slice(None)).values, captions.values)
    assert captions.values.shape == (3, int(captions.lengths.max()), feature_files.SIZE)
    for row, values, length in zip(
        chosen, captions.values, captions.lengths, strict=True
    ):
        first, last = np.append(0, ends)[rows[row]], ends[rows[row]]
        assert last - first == length
        np.testing.assert_array_equal(
            values[:length], stored[first:last].astype(np.float32)
        )
        assert not values[length:].any()


def test_a_method_trains_on_tokens_is_evaluated_and_asked(tiny_encoder):
    data = prepared_tables.read("tiny")
    features = feature_set(tiny_encoder, "contexts")
    encode.contexts(features, data)
    cell = tokens_cell()
    tiny_cells.train_cell(cell)
    record = tiny_cells.evaluated(cell)
    assert record.text_features["weights"] == "bert"
    assert any(
        each.texts == "contextual" and each.here == "bert" for each in record.departures
    )
    trained = trained_cell(cell, data.sha256)
    on_split = model_on_split(trained, data, data.split("test"), torch.device("cpu"))
    params = params_of(cells={"a": cell}, feature_sets={"b": features})
    matrix = model_scores.score(on_split.model, on_split.inputs)
    for caption in (0, 3):
        asked = query.score_text(
            params, trained, on_split, data, on_split.texts[caption]
        )
        torch.testing.assert_close(asked, matrix[:, caption])


@pytest.mark.parametrize("standardise", [False, True])
def test_a_text_has_the_vector_of_its_feature_folder(standardise, tiny_encoder):
    data, features = (
        prepared_tables.read("tiny"),
        feature_set(tiny_encoder, "sentences", standardise=standardise),
    )
    encode.vectors(features, data)
    stored = np.load("data/features/tiny/vectors/sentence.npy").astype(np.float32)
    row = int(np.flatnonzero(data.captions["split"] == "test")[2])
    vector = query.sentence_vector(features, data, data.captions["text"][row])
    np.testing.assert_array_equal(vector[0], stored[row])


def test_the_contract_check_feeds_tokens(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = tiny_cells.OWN_METHODS / "pooled_tokens.py"
    assert main(["check", str(path)]) == 0
    assert "pooled and contextual" in capsys.readouterr().out
    broken = path.read_text().replace(".sum(1) / captions.lengths[:, None]", ".mean(1)")
    shutil.copy(tiny_cells.OWN_METHODS / "plain.py", "plain.py")
    Path("mean.py").write_text(broken)
    assert main(["check", "mean.py"]) == 1
    assert "wider captions" in capsys.readouterr().out


SEASON = """
title: Transformer
datasets:
  shapes:
    options: {train: 24, val: 6, test: 8}
    image: {network: drawn_cnn, input_size: 96, grid: 2, flip: false}
    sentence: {transformer: {weights: bert}}
methods:
  pooled_tokens: own/pooled_tokens.py
  vse_on_vectors: own/vse_on_vectors.py
presets: [vse_on_vectors, pooled_tokens]
sentence_of: {vse_on_vectors: transformer}
seeds: [0]
device: cpu
options:
  vse_on_vectors: {embedding_size: 8, epochs: 1, batch_size: 8, decay_after: 1}
"""


def test_a_season_of_drawings_is_trained_on_both(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", "params.yaml")
    Path("own").mkdir()
    for file in ("tests/own_methods/plain.py", "tests/own_methods/pooled_tokens.py"):
        shutil.copy(ROOT / file, "own")
    shutil.copy(ROOT / "examples/crossed/vse_on_vectors.py", "own")
    Path("seasons").mkdir()
    Path("small.yaml").write_text(SEASON)
    Path("w").mkdir()
    assert main(["season", "small.yaml", "--weights-dir", "w"]) == 0
    assert main(["doctor"]) == 2
    assert "MISSING: w/bert: not found" in capsys.readouterr().out
    feature_files.bert(Path("w/bert")).joinpath("tokenizer.json").rename("kept.json")
    assert main(["doctor"]) == 2
    assert (
        "MISSING: w/bert/tokenizer.json: expected an encoder" in capsys.readouterr().out
    )
    Path("kept.json").rename("w/bert/tokenizer.json")
    drawn_cnn.WEIGHTS.parent.mkdir(parents=True)
    torch.manual_seed(0)
    torch.save(drawn_cnn.Network().state_dict(), drawn_cnn.WEIGHTS)
    assert main(["doctor"]) == 0
    assert main(["fetch", "shapes"]) == main(["prepare", "shapes"]) == 0
    slugs = ("transformer_bert", "transformer_bert_tokens", "drawn_cnn_96_g2")
    for slug in slugs:
        assert main(["encode", f"shapes-{slug}"]) == 0
    for preset in ("vse_on_vectors", "pooled_tokens"):
        for stage in ("train", "evaluate"):
            assert main([stage, f"shapes-{preset}-0"]) == 0
        record = json.loads(
            Path(f"data/cells/small/shapes/{preset}/0/record.json").read_text()
        )
        assert record["status"] == "ok", record["reason"]
        assert str(tmp_path) not in json.dumps(record)
    # no words were asked for
    assert not Path("data/features/shapes/words_trained300").exists()


def test_a_season_must_name_the_weights():
    text = SEASON.replace("weights: bert", "size: 12")
    text = text.replace("own/pooled", f"{tiny_cells.OWN_METHODS}/pooled")
    text = text.replace("own/vse", f"{ROOT}/examples/crossed/vse")
    for preset, kind in (
        ("vse_on_vectors", "sentences"),
        ("pooled_tokens", "contexts"),
    ):
        declared = Season.model_validate(yaml.safe_load(text) | {"presets": [preset]})
        with refused(f"datasets.shapes: transformer for {kind}", "of its weights"):
            resolve("small", declared)

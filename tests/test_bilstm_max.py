"""The BiLSTM with maximum over time, against loops over words."""

import numpy as np
import pytest
import torch
from made_inputs import SMALL, VOCABULARY, WORDS
from oracles import layers

from benchmark.data.feature_folders import Words
from benchmark.features import bilstm_max
from benchmark.season.parameters import SentenceEncoder


def states(encoder: bilstm_max.Encoder, suffix: str, x: np.ndarray) -> np.ndarray:
    """States (n, hidden) of one direction over the words of one sentence."""
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    return layers.lstm(
        x, *(getattr(encoder.enc_lstm, name + suffix).numpy() for name in names)
    )


def sentences_of(*lengths: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in lengths
    ]


def encoder_of(hidden: int = 5) -> bilstm_max.Encoder:
    torch.manual_seed(0)
    return bilstm_max.Encoder(3, hidden).double().requires_grad_(False)


@pytest.mark.parametrize("masked", [True, False])
def test_bilstm_max_is_a_loop_over_words(masked):
    encoder, sentences = encoder_of(), sentences_of(6, 4, 4, 1)
    vectors = encoder(sentences, masked).numpy()
    for row, sentence in zip(vectors, sentences, strict=True):
        x = sentence.numpy()
        forward, backward = states(encoder, "", x), states(encoder, "_reverse", x[::-1])
        expected = np.concatenate([forward.max(0), backward.max(0)])
        if not masked and len(x) < 6:  # a padded position counts as zeros
            expected = np.maximum(expected, 0)
        np.testing.assert_allclose(row, expected, rtol=1e-10, atol=1e-10)


def test_captions_are_framed_where_the_marks_have_vectors():
    framed = Words(
        (*VOCABULARY, "<s>", "</s>"), np.vstack([WORDS.vectors, [[1, 2, 3], [4, 5, 6]]])
    )
    framed = Words(framed.words, framed.vectors.astype(np.float32))
    captions, settings = (
        ["w03 unheard w07", "w01", "never seen"],
        SentenceEncoder(hidden=5),
    )
    vectors, facts = bilstm_max.encode(captions, np.ones(3, bool), framed, settings)
    assert facts["frame"] == ["<s>", "</s>"]
    torch.manual_seed(bilstm_max.SEED)
    encoder = bilstm_max.Encoder(3, settings.hidden)
    for row, tokens in enumerate(
        (["<s>", "w03", "w07", "</s>"], ["<s>", "w01", "</s>"])
    ):
        x = torch.from_numpy(framed.rows(tokens))
        np.testing.assert_allclose(
            vectors[row], encoder([x], True)[0].detach(), atol=1e-6
        )
    assert (vectors[2] == 0).all()  # not the encoding of the marks alone
    plain, facts = bilstm_max.encode(captions, np.ones(3, bool), WORDS, settings)
    assert facts["frame"] == [] and not np.allclose(plain[:2], vectors[:2])


# InferSent's files are of the old format
@pytest.mark.parametrize("zipped", [True, False])
def test_published_weights_are_used(tmp_path, zipped):
    torch.manual_seed(7)
    encoder, path = bilstm_max.Encoder(3, 3), tmp_path / "infersent1.pkl"
    assert set(encoder.state_dict()) == {
        f"enc_lstm.{kind}_{side}_l0{end}"
        for kind in ("weight", "bias")
        for side in ("ih", "hh")
        for end in ("", "_reverse")
    }
    torch.save(encoder.state_dict(), path, _use_new_zipfile_serialization=zipped)
    settings = SMALL.model_copy(update={"weights": str(path)})
    vectors, facts = bilstm_max.encode(["w03"], np.ones(1, bool), WORDS, settings)
    with torch.no_grad():
        expected = encoder([torch.from_numpy(WORDS.rows(["w03"]))], True)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert facts["weights"] == "infersent1.pkl" and len(facts["sha256"]) == 64

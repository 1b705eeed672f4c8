"""Dual-path CNN with instance loss. Zheng, Zheng, Garrett, Yang, Shen (papers 000 and 001;
sections are those of 001). Reference code: github.com/layumi/Image-Text-Embedding at eefe0f2.

Departs from the paper: stage I reads features averaged over an image and its mirror image, without
crops. Stage II averages f of both, as Section VI-B says.
Assumed where the paper is silent, from the code unless marked *:
- widths, strides and left padding of the text CNN; a batch norm after the word lookup; no biases;
  batch norms with eps 0.001 and momentum 0.05; initial weights U(+-sqrt(3 / fan in)), a tenth of
  that for W_share;
- dropout stands before W_share only; cosines see f without it;
- weight decay 0.0001; stage I for 240 epochs, stage II for 40 + 20 at a tenth of the rate;
- the batch norms of the image CNN keep their statistics in stage II*;
- a test sentence lies in the centre*, or at the left where training put it there;
- a negative is a random row of another group in the batch*, the same row for I_n and T_n.
The options marked official below do as the code does. Still different from it: every row is an
anchor (code: half of them, the other half are negatives), negatives of the pool take no part in
the instance loss, a caption belongs to its image (code, CUHK-PEDES: to its person), the image CNN
has one rate in stage II (code: a lower one for its batch norms and first layer), and crops are the
paper's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Literal, get_args, get_origin

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmark.contracts.methods import (
    Batch,
    Captions,
    Count,
    Encoding,
    Inputs,
    NotApplicableError,
    OptionError,
    Phase,
    Rate,
    Share,
    Size,
    Sizes,
    Weight,
)
from benchmark.layers.losses import differ
from benchmark.layers.precision import in_float32, unit, wide

# Shape legend, beyond the contract: L positions of the fixed-length text, N channels,
# P captions of the pool, S side of an image, s side of a crop.

STAGES = ((128, 256, 1), (512, 512, 2), (1024, 1024, 2), (2048, 2048, 1))  # middle, out, stride
POOLINGS = {"average": lambda x_CNL: x_CNL.mean(-1), "max": lambda x_CNL: x_CNL.amax(-1)}


@dataclass(frozen=True, kw_only=True)
class Config:
    stage: Literal[1, 2] = 1  # Section V; 1: fixed image CNN, 2: end to end
    blocks: str = "3,4,6,3"  # Section III-B, as ResNet-50; official: 3,4,6,1
    text_width: Rate = 1.0  # factor on the official layer widths
    text_pooling: Literal["average", "max"] = "average"  # Fig. 2; official: max
    text_layers: Literal[1, 2] = 2  # Fig. 2, FC layers after the text CNN; official: 1
    text_length: Size = 32  # Section III-B; 56 for CUHK-PEDES
    alignment: Literal["shift", "left"] = "shift"  # Section III-B; Table VI: left
    test_offsets: Literal["centre", "all"] = "centre"  # assumed; official: all, summed
    word_size: Size = 300  # Section III-B
    word_init: Literal["word2vec", "random"] = "word2vec"  # Section III-B; Table V: random
    hidden_size: Size = 2048  # Fig. 2, text branch
    image_hidden_size: Size = 2048  # Section III-A; official VGG-19: 4096
    embedding_size: Size = 2048  # Fig. 2
    trailing_norm: bool = False  # Fig. 2 ends on FC; official: batch norm, and ReLU in training
    dropout: Share = 0.75  # Section VI-B; official: 0.5 on MSCOCO, 0.8 on CUHK-PEDES
    lambda1: Weight = 0.0  # Eq. 9, ranking; Section V: stage I 0, stage II 1
    lambda2: Weight = 1.0  # Eq. 9, instance loss of images
    lambda3: Weight = 1.0  # Eq. 9, instance loss of texts; official stage II: 0.1
    margin: Weight = 1.0  # Section VI-B, Eq. 4
    negatives: Literal["random", "pool"] = "random"  # assumed; official: pool, T_n its hardest
    pool_size: Size = 256  # official
    clusters: Weight = 0.0  # Table IV: k-means classes per image; 0: every group is a class
    batch_size: Size = 32  # Section VI-B
    learning_rate: Rate = 0.001  # Section VI-B; official: 0.01 for convolutions
    image_rate: Weight = 1.0  # Section VI-B: one rate; factor on it for the image CNN in stage II
    layer_rates: bool = False  # official: a rate per kind of layer
    nesterov: bool = False  # official: True
    weight_decay: Weight = 0.0001  # official
    epochs: Size = 240  # Section IV-C, stage I; official stage II: 60
    decay_after: Count = 240  # learning rate / 10 from here on; official stage II: 40

    def __post_init__(self) -> None:
        for field in fields(self):
            is_choice, value = get_origin(field.type) is Literal, getattr(self, field.name)
            choices = get_args(field.type)
            if is_choice and value not in choices:
                raise OptionError(field.name, " or ".join(map(str, choices)), value)
        counts = self.blocks.split(",")
        if len(counts) != len(STAGES) or not all(x.isdecimal() and int(x) for x in counts):
            raise OptionError("blocks", "four counts like 3,4,6,3", self.blocks)
        if self.text_width < 1 / 64:
            raise OptionError("text_width", "1/64 or more", self.text_width)
        if not (self.lambda1 or self.lambda2 or self.lambda3):
            raise OptionError("lambda1, lambda2, lambda3", "one of them above 0", 0)


def inputs(config: Config) -> Inputs:
    return Inputs(
        image="pooled" if config.stage == 1 else "pixels",
        text="words",
        word_vectors=config.word_init == "word2vec",
        clusters=config.clusters,
        caption_similarity=True,
    )


def recipe(config: Config) -> list[Phase]:
    """Section VI-B: SGD with momentum; an epoch shows every image once, with one caption."""
    decay = [1.0 if epoch < config.decay_after else 0.1 for epoch in range(config.epochs)]
    phase = Phase(
        epochs=config.epochs,
        learning_rates=tuple(config.learning_rate * factor for factor in decay),
        batch_size=config.batch_size,
        draws="images",
        pool=config.pool_size if config.lambda1 and config.negatives == "pool" else 0,
        optimiser="sgd",
        weight_decay=config.weight_decay,
        momentum=0.9,
        nesterov=config.nesterov,
        rates=layer_rates(config) if config.layer_rates else image_rates(config),
    )
    return [phase]


def image_rates(config: Config) -> tuple[tuple[str, float], ...]:
    return (("image_network.", config.image_rate),) if config.image_rate != 1 else ()


def layer_rates(config: Config) -> tuple[tuple[str, float], ...]:
    """Official factors over the rate of a convolution, which is 0.01."""
    with torch.device("meta"):  # for the names of its batch norms
        model = Model(replace(config, stage=1), Sizes(image=1, text=2, classes=1))
    norms = [name for name, module in model.named_modules() if isinstance(module, nn.BatchNorm1d)]
    scales = [(f"{name}.weight", 2.0) for name in norms]
    return (*scales, ("words.", 0.01), ("share.", 0.1), ("image_network.", 0.2))


@in_float32
def ranking(
    image_BD: Tensor, text_BD: Tensor, wrong_image_BD: Tensor, wrong_text_BD: Tensor, margin: float
) -> Tensor:
    """Eq. 4, the mean over anchors. Row b is the quadruple (I_a, T_a, I_n, T_n)."""
    matched_B = F.cosine_similarity(image_BD, text_BD)
    image_anchor_B = F.relu(margin - matched_B + F.cosine_similarity(image_BD, wrong_text_BD))
    text_anchor_B = F.relu(margin - matched_B + F.cosine_similarity(text_BD, wrong_image_BD))
    return (image_anchor_B + text_anchor_B).mean()


def another_row(group_B: Tensor) -> Tensor:
    """For each row a random row of another group; the row itself if there is none, which moves no
    weight."""
    draw_BB = torch.rand(len(group_B), len(group_B), device=group_B.device)
    draw_BB = draw_BB.masked_fill(~differ(group_B), -2.0).fill_diagonal_(-1.0)
    return draw_BB.argmax(1)


def spare(captions: Captions, length: int) -> Tensor:
    """(C,) positions that a sentence leaves empty; it fits at one offset more than that."""
    return length - captions.lengths.clamp(max=length)


def placed(captions: Captions, offset_C: Tensor, length: int) -> Tensor:
    """Word ids (C, L) with the first word at `offset`, cut after L words; 0 is padding."""
    source_CL = torch.arange(length, device=offset_C.device) - offset_C[:, None]
    inside_CL = (source_CL >= 0) & (source_CL < captions.lengths[:, None])
    return captions.values.gather(1, source_CL * inside_CL) * inside_CL


def random_crops(pixels_I3SS: Tensor, side: int) -> Tensor:
    """A random crop (I, 3, s, s) of each image, mirrored with probability 0.5."""
    count, device = len(pixels_I3SS), pixels_I3SS.device
    start_2I1 = torch.randint(pixels_I3SS.shape[-1] - side + 1, (2, count, 1), device=device)
    rows_Is, columns_Is = start_2I1 + torch.arange(side, device=device)
    mirrored_I1 = torch.rand(count, 1, device=device) < 0.5
    columns_Is = torch.where(mirrored_I1, columns_Is.flip(1), columns_Is)
    image_I11 = torch.arange(count, device=device)[:, None, None]
    pixels_ISS3 = pixels_I3SS.permute(0, 2, 3, 1)
    return pixels_ISS3[image_I11, rows_Is[:, :, None], columns_Is[:, None]].permute(0, 3, 1, 2)


def centre_crops(pixels_I3SS: Tensor, side: int) -> Tensor:
    """The crop (I, 3, s, s) in the middle of each image."""
    start = (pixels_I3SS.shape[-1] - side) // 2
    return pixels_I3SS[:, :, start : start + side, start : start + side]


def norm(size: int) -> nn.BatchNorm1d:
    return nn.BatchNorm1d(size, eps=0.001, momentum=0.05)  # official BatchNorm.m, initParams.m


class Block(nn.Module):
    """Fig. 3: 1x1, 1x2 and 1x1 convolution and a shortcut. Position t sees t - 1 and t."""

    def __init__(self, into: int, middle: int, out: int, stride: int, project: bool) -> None:
        super().__init__()
        narrow = nn.Conv1d(into, middle, 1, bias=False)
        pair = nn.Conv1d(middle, middle, 2, stride, bias=False)
        widen = nn.Conv1d(middle, out, 1, bias=False)
        layers = [narrow, norm(middle), nn.ReLU(), nn.ConstantPad1d((1, 0), 0.0)]
        layers += [pair, norm(middle), nn.ReLU(), widen, norm(out)]
        self.residual = nn.Sequential(*layers)
        projection = nn.Sequential(nn.Conv1d(into, out, 1, stride, bias=False), norm(out))
        self.shortcut = projection if project else nn.Identity()

    def forward(self, x_CNL: Tensor) -> Tensor:
        return F.relu(self.residual(x_CNL) + self.shortcut(x_CNL))


def text_cnn(config: Config) -> nn.Sequential:
    """Section III-B: four stages of blocks; all but the first of a stage have a bottleneck."""
    blocks, into = [], config.word_size
    for depth, (middle, out, stride) in zip(config.blocks.split(","), STAGES, strict=True):
        middle, out = int(middle * config.text_width), int(out * config.text_width)
        blocks.append(Block(into, middle, out, stride, project=True))
        blocks += [Block(out, out // 4, out, 1, project=False) for _ in range(int(depth) - 1)]
        into = out
    return nn.Sequential(*blocks)


def head(sizes: Sequence[int], trailing_norm: bool) -> nn.Sequential:
    """Fig. 2: FC, batch norm, ReLU, FC; official: one batch norm more."""
    layers = []
    for into, out in pairwise(sizes):
        layers += [nn.Linear(into, out, bias=False), norm(out), nn.ReLU()]
    return nn.Sequential(*layers[: -1 if trailing_norm else -2])


class Model(nn.Module):
    """Two CNNs into one space. Encodings: unit vectors (I, D) and (C, D).

    Stage II has the parameters of stage I under their names, and `image_network.*`.
    """

    def __init__(
        self, config: Config, sizes: Sizes, word_vectors: Tensor | None = None, image_network=None
    ) -> None:
        super().__init__()
        if (image_network is None) != (config.stage == 1):
            raise ValueError("image_network: stage 2 needs one, stage 1 takes none")
        if word_vectors is not None and word_vectors.shape[1] != config.word_size:
            raise NotApplicableError(
                f"word vectors: expected size {config.word_size}, found {word_vectors.shape[1]}; "
                f"set the option word_size to it"
            )
        self.config, D = config, config.embedding_size
        self.words = nn.Embedding(sizes.text, config.word_size, padding_idx=0)
        self.word_norm = norm(config.word_size)
        self.text_cnn = text_cnn(config)
        hidden = (config.hidden_size,) * (config.text_layers - 1)
        text_size = int(STAGES[-1][1] * config.text_width)
        self.text_head = head((text_size, *hidden, D), config.trailing_norm)
        self.image_head = head((sizes.image, config.image_hidden_size, D), config.trailing_norm)
        self.activate = nn.ReLU() if config.trailing_norm else nn.Identity()  # for the losses
        self.dropout = nn.Dropout(config.dropout)
        classifies = config.lambda2 or config.lambda3
        self.share = nn.Linear(D, sizes.classes, bias=False) if classifies else None  # W_share
        self._initialise(word_vectors)
        self.image_network = image_network
        self.train()

    @torch.no_grad()
    def _initialise(self, word_vectors: Tensor | None) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv1d | nn.Linear):
                bound = (3 / module.weight.shape[1:].numel()) ** 0.5
                module.weight.uniform_(-bound, bound)  # official initParams.m
        if self.share is not None:
            self.share.weight *= 0.1
        nn.init.xavier_uniform_(self.words.weight)  # Section VI-D, [52]
        if word_vectors is not None:
            self.words.weight.copy_(word_vectors)
        self.words.weight[0] = 0.0  # Eq. 2: padding is a row of zeros

    def train(self, mode: bool = True) -> "Model":
        """Batch norms of the image CNN stay in evaluation mode: frozen statistics."""
        super().train(mode)
        for module in self.image_network.modules() if self.image_network is not None else ():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.eval()
        return self

    def encode_images(self, images: Tensor) -> Encoding:
        return (unit(self._image_features(self._views(images))),)

    def encode_captions(self, captions: Captions) -> Encoding:
        if self.config.test_offsets == "all" and not self.training:
            return (unit(self._sum_over_offsets(captions)),)
        return (unit(self._text_features(self._placed(captions))),)

    @in_float32
    def similarity(self, images: Encoding, captions: Encoding) -> Tensor:
        """D, the cosine of Section IV-A, shape (I, C)."""
        return images[0] @ captions[0].T

    @in_float32
    def caption_similarity(self, captions: Encoding, others: Encoding) -> Tensor:
        """The cosine of two sentences, shape (C, C)."""
        return captions[0] @ others[0].T

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Eq. 9, the mean over the batch; a term of weight 0 is left out."""
        c, B, views = self.config, len(batch.images), self._views(batch.images)
        ids_NL, pooled = self._placed(batch.captions), c.lambda1 and c.negatives == "pool"
        if pooled:
            ids_NL = torch.cat([ids_NL, self._hardest_of_pool(views, batch)])
        image_BD = self.activate(self._image_features(views))
        text_ND = self.activate(self._text_features(ids_NL))
        text_BD, terms = text_ND[:B], {}
        if c.lambda1:
            wrong_B = another_row(batch.group_ids)
            wrong_text_BD = text_ND[B:] if pooled else text_BD[wrong_B]
            term = ranking(image_BD, text_BD, image_BD[wrong_B], wrong_text_BD, c.margin)
            terms["rank"] = c.lambda1 * term
        if c.lambda2:
            terms["visual"] = c.lambda2 * self._instance(image_BD, batch.class_ids)
        if c.lambda3:
            terms["textual"] = c.lambda3 * self._instance(text_BD, batch.class_ids)
        return terms

    def _instance(self, f_BD: Tensor, class_B: Tensor) -> Tensor:
        """Eqs. 5 and 6 for images, 7 and 8 for texts."""
        return F.cross_entropy(wide(self.share(self.dropout(f_BD))), class_B)

    @torch.no_grad()
    def _hardest_of_pool(self, views: list[Tensor], batch: Batch) -> Tensor:
        """Word ids (B, L) of the wrong caption of the pool that is most like each image."""
        ids_PL, training = self._placed(batch.pool), self.training
        self.eval()
        image_BD = unit(self.activate(self._image_features(views)))
        text_PD = unit(self.activate(self._text_features(ids_PL)))
        self.train(training)
        torch.clear_autocast_cache()  # weights that were cast without gradients
        same_BP = batch.group_ids[:, None] == batch.pool_ids
        scores_BP = self.similarity((image_BD,), (text_PD,))
        return ids_PL[scores_BP.masked_fill(same_BP, -2.0).argmax(1)]

    def _views(self, images: Tensor) -> list[Tensor]:
        """Pooled features (I, F): of a random crop, or of the centre and of its mirror image."""
        if self.config.stage == 1:
            return [images]
        crops = random_crops if self.training else centre_crops
        side = images.shape[-1] * 224 // 256  # Section VI-B
        pixels = crops(images, side).to(self.image_head[0].weight.dtype) / 255
        seen = [pixels] if self.training else [pixels, pixels.flip(-1)]
        return [self.image_network(x)[0] for x in seen]

    def _image_features(self, views: list[Tensor]) -> Tensor:
        """f_img, Eq. 1, the mean over the views (Section VI-B)."""
        return torch.stack([self.image_head(view) for view in views]).mean(0)

    def _text_features(self, ids_CL: Tensor) -> Tensor:
        """f_text, Eq. 3."""
        # Of a transposed tensor, batch norm takes a square root that processors approximate.
        words_CNL = self.word_norm(self.words(ids_CL).transpose(1, 2).contiguous())
        return self.text_head(POOLINGS[self.config.text_pooling](self.text_cnn(words_CNL)))

    def _placed(self, captions: Captions) -> Tensor:
        """Word ids (C, L): position shift while training, else centred; or left alignment."""
        spare_C = spare(captions, self.config.text_length)
        offset_C = spare_C // 2
        if self.config.alignment == "left":
            offset_C = torch.zeros_like(spare_C)
        elif self.training:
            draw_C = torch.rand(len(spare_C), device=spare_C.device)
            offset_C = (draw_C * (spare_C + 1)).long()
        return placed(captions, offset_C, self.config.text_length)

    def _sum_over_offsets(self, captions: Captions) -> Tensor:
        """The sum of f_text over all offsets at which each sentence fits."""
        length, total_CD = self.config.text_length, 0.0
        spare_C = spare(captions, length)
        for offset in range(length):
            ids_CL = placed(captions, spare_C.clamp(max=offset), length)
            total_CD = total_CD + self._text_features(ids_CL) * (spare_C >= offset)[:, None]
        return total_CD

"""Densely connected recurrent and co-attentive network."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.characters import CharacterConvolution
from architectures.blocks.recurrent import Recurrent
from harness.kinds import PairEncoder, pool
from harness.layers.attention import masked_softmax
from harness.layers.overlap import shared
from harness.registry import Recipe, register
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters


class CoAttentiveLayer(nn.Module):
    """Features x (B, T, width) of each text to [h; a; x] (B, T, ``size``): a BiLSTM's states, what
    they attend to in the other text, and all that came before.

    a_i = sum_j softmax_j(cos(h_i, h'_j)) h'_j, with the states h' of the other text.
    """

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.recurrence = Recurrent("lstm", width, hidden, bidirectional=True)
        self.size = 2 * self.recurrence.size + width

    def forward(self, p: Tensor, p_mask: Tensor, q: Tensor, q_mask: Tensor) -> tuple[Tensor, Tensor]:
        h_p, h_q = self.recurrence(p, p_mask), self.recurrence(q, q_mask)
        cosines = F.normalize(h_p, dim=-1) @ F.normalize(h_q, dim=-1).transpose(1, 2)
        a_p = masked_softmax(cosines, q_mask[:, None]) @ h_q
        a_q = masked_softmax(cosines.transpose(1, 2), p_mask[:, None]) @ h_p
        return torch.cat([h_p, a_p, p], dim=-1), torch.cat([h_q, a_q, q], dim=-1)


class Autoencoder(nn.Module):
    """Features (B, T, width) to a code (B, T, ``code``) from which they can be restored.

    The reconstruction is held against the features as they are: its loss reaches the layers below
    through the code alone, and cannot be made small by features that say little.
    """

    def __init__(self, width: int, code: int, dropout: float):
        super().__init__()
        self.encode = nn.Linear(width, code)
        self.dropout = nn.Dropout(dropout)
        self.decode = nn.Linear(code, width)

    def forward(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The code, and the mean squared error of the reconstruction over the real positions."""
        code = self.dropout(self.encode(features))
        return code, F.mse_loss(self.decode(code[mask]), features[mask].detach())


@register(
    "drcn",
    name="Densely connected recurrent and co-attentive network",
    kind="pair",
    paper="Kim et al. 2019",
    source="M2.5[85]",
    year=2019,
    recipe=Recipe(
        optimizer="rmsprop",
        lr=0.001,
        weight_decay=0.000001,
        decay_exempt=("vectors",),
        lr_schedule="plateau",
        factor=0.85,
    ),
    tiny={
        "hidden": 12,
        "layers": 2,
        "code": 16,
        "output": 24,
        "dropout": 0.0,
        "word_dropout": 0.0,
        "code_dropout": 0.0,
    },
    vectors_of_paper="GloVe",
    deviations=(
        (
            "An autoencoder stands behind the third layer and behind the last, as in re-implementations; where those of"
            " the paper stand, only a diagram of its Figure 1 shows."
        ),
        "The ReLU layers have no batch normalisation, which the paper has for data of its one-way type.",
        "The reconstruction's loss is added as it is: the paper states no weight.",
        "Unknown words share one vector beside their characters; in the paper each has a random one.",
        "Texts are not cut after 35 words.",
    ),
)
class DRCN(PairEncoder):
    """Layers of a BiLSTM and co-attention, each of which reads what all layers below gave, with
    autoencoders in between; maximum over the words.

    A word is a tuned vector, a fixed one, the maximum of a convolution over its characters, and a
    mark for words that the other text has. Behind every ``between`` layers, and behind the last, an
    autoencoder's code takes the place of the features. From the maxima p and q the vector [p; q; p
    + q; p - q; |p - q|] passes two ReLU layers: (B, ``output``). Both texts share all weights.
    ``word_dropout`` acts on the words, ``code_dropout`` on the codes, ``dropout`` before the ReLU
    layers. Slow, because of five layers that read up to 1400 numbers a word.
    """

    view = WordsAndCharacters()
    cut = "the features that an autoencoder rebuilds are constants to its loss; the paper does not say"
    vectors = "multichannel"
    ordinary_dropouts = ("word_dropout", "dropout", "code_dropout")

    def __init__(
        self,
        width: int,
        view: WordsAndCharacters,
        hidden: int = 100,
        layers: int = 5,
        between: int = 3,
        code: int = 200,
        output: int = 1000,
        character_size: int = 16,
        character_filters: int = 32,
        character_window: int = 3,
        word_dropout: float = 0.5,
        code_dropout: float = 0.2,
        dropout: float = 0.2,
    ):
        super().__init__()
        self.characters = CharacterConvolution(
            view.alphabet_size, character_size, character_filters, character_window, 0.0
        )
        self.word_dropout, self.dropout = nn.Dropout(word_dropout), nn.Dropout(dropout)
        self.layers, self.autoencoders = nn.ModuleList(), nn.ModuleDict()
        size = 2 * width + character_filters + 1
        for number in range(1, layers + 1):
            layer = CoAttentiveLayer(size, hidden)
            self.layers.append(layer)
            size = layer.size
            if number % between == 0 or number == layers:
                self.autoencoders[str(number)] = Autoencoder(size, code, code_dropout)
                size = code
        self.output = nn.Sequential(nn.Linear(5 * size, output), nn.ReLU(), nn.Linear(output, output), nn.ReLU())
        self.size = output

    def words(self, text: WordCharacterBatch, other: WordCharacterBatch) -> Tensor:
        """Features of each word (B, T, 2 * width + character_filters + 1)."""
        spelt = self.characters(text.characters, text.character_mask)
        embedded = self.word_dropout(torch.cat([text.vectors, text.static, spelt], dim=-1))
        return torch.cat([embedded, shared(text, other)[..., None].to(embedded.dtype)], dim=-1)

    def forward(self, first: WordCharacterBatch, second: WordCharacterBatch) -> Tensor:
        p, q = self.words(first, second), self.words(second, first)
        for number, layer in enumerate(self.layers, start=1):
            p, q = layer(p, first.mask, q, second.mask)
            if str(number) in self.autoencoders:
                autoencoder = self.autoencoders[str(number)]
                (p, p_loss), (q, q_loss) = autoencoder(p, first.mask), autoencoder(q, second.mask)
                self.add_loss("reconstruction", p_loss + q_loss)
        p, q = pool(p, first.mask, "max"), pool(q, second.mask, "max")
        return self.output(self.dropout(torch.cat([p, q, p + q, p - q, (p - q).abs()], dim=1)))

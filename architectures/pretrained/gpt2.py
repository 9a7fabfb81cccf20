"""GPT-2."""

from __future__ import annotations

import math

from architectures.blocks.causal_pieces import NAMES, SETTINGS, CausalPieces
from architectures.blocks.published_weights import Family, PublishedWeights
from harness.registry import Recipe, register
from harness.views.byte_subwords import ByteSubwords

FAMILY = Family(
    "gpt2",
    NAMES | {"body.norm": "ln_f"},
    expected={
        "activation_function": "gelu_new",
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
    },
    settings=SETTINGS,
    turned=True,
)


@register(
    "gpt2",
    name="GPT-2, small",
    kind="plm",
    paper="Radford et al. 2019",
    source="M2.10[144] R25.6",
    year=2019,
    version=2,
    parents={"weights": "gpt2@text_mix"},
    recipe=Recipe(
        optimizer="adamw",
        lr=0.0000625,
        batch_size=32,
        epochs=3,
        patience=3,
        weight_decay=0.01,
        clip=1.0,
        lr_schedule="linear",
        warmup_share=0.002,
        decay_exempt=("biases", "norms"),
    ),
    recipes={
        "text": Recipe(
            optimizer="adamw",
            lr=0.00025,
            batch_size=64,
            epochs=5,
            patience=5,
            weight_decay=0.01,
            clip=1.0,
            lr_schedule="cosine",
            warmup_share=0.01,
            decay_exempt=("biases", "norms"),
        ),
    },
    tiny={"layers": 2, "hidden": 64, "heads": 2, "vocabulary": 1000},
    deviations=(
        "Pre-training has the recipe of GPT, in five passes; the paper has batches of 512 and states no rate.",
        "Four layers of 256, not twelve of 768 or more, a vocabulary of 8,000 pieces, not 50,257, and texts of at most"
        " 128 pieces, not 1,024; -o gpt2.pretrained=FOLDER loads the paper's.",
        (
            "The paper answers without tuning, by the likelihood of what goes on behind a prompt; here the model is"
            " tuned on each task by the recipe of GPT (Radford et al. 2018), without its auxiliary loss."
        ),
        "Pre-training reads short texts of many sources packed together, not pages of the web.",
        "Texts begin with [CLS] and end with [SEP], where the paper has one mark between documents.",
        (
            "A word is labelled by the state at its first piece, and having no answer scored by that at the start"
            " piece: they know nothing of what follows."
        ),
    ),
)
class GPT2(CausalPieces):
    """GPT with the norm before each sublayer and a last one behind the stack, over pieces of bytes.

    The matrices whose results are added to the states begin smaller by the square root of their
    number, so that the sum does not grow with depth. The vector of a text is its last state.

    ``pretrained`` is a folder or a name on the hub that holds weights (safetensors) and their
    tokenizer, which bring their own ``layers``, ``hidden``, ``heads``, ``dropout`` and
    ``vocabulary``. Texts then begin and end with the one mark that this tokenizer has.
    """

    view = ByteSubwords()

    def __init__(
        self,
        width: int,
        view: ByteSubwords,
        pretrained: str = "",
        layers: int = 4,
        hidden: int = 256,
        heads: int = 4,
        dropout: float = 0.1,
        vocabulary: int = 8000,
        max_length: int = 128,
        stride: int = 64,
    ):
        sizes = {"layers": layers, "hidden": hidden, "heads": heads, "dropout": dropout}
        given = PublishedWeights(view.pretrained, FAMILY, width, view.max_length) if view.pretrained else None
        super().__init__(width, view, **(given.sizes if given else sizes), pre_norm=True)
        self.begin(self.positions, 0.01)  # as in the authors' program, where those of pieces have 0.02
        for layer in self.body.layers:
            for added in (layer.attention.output, layer.feedforward[-1]):
                self.begin(added, 0.02 / math.sqrt(2 * layers))
        if given:
            given.give(self)

"""Weights that others have trained and published, for the body of pre-trained models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor, nn

from harness.errors import MissingWeights

EXPECTED = {"hidden_act": "gelu", "is_decoder": False, "position_embedding_type": "absolute"}
"""Settings without which a model would run in our body, and answer otherwise."""
SETTINGS = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "inner": "intermediate_size",
    "embedded": "embedding_size",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "eps": "layer_norm_eps",
}
"""Names that most families have for our settings; what a family has no name for is None."""


class Family(NamedTuple):
    """Models of one type of transformers, and where they have what our body has.

    ``names`` has the place of each of our modules in theirs; "*" stands for the number of a layer.
    ``after_padding``: the first piece stands at the position behind the number of the padding.
    ``expected`` are the settings without which a model would answer otherwise in our body, and
    ``settings`` the names of its own for some of :data:`SETTINGS`. ``turned``: the matrices of
    layers have a row for each input.
    """

    type: str
    names: Mapping[str, str]
    after_padding: bool = False
    expected: Mapping[str, Any] = EXPECTED
    settings: Mapping[str, str] = {}
    turned: bool = False


TABLES = {
    "table": "embeddings.word_embeddings",
    "positions": "embeddings.position_embeddings",
    "segments": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
}
LAYERS = TABLES | {
    "body.layers.*.attention.query": "encoder.layer.*.attention.self.query",
    "body.layers.*.attention.key": "encoder.layer.*.attention.self.key",
    "body.layers.*.attention.value": "encoder.layer.*.attention.self.value",
    "body.layers.*.attention.output": "encoder.layer.*.attention.output.dense",
    "body.layers.*.norms.0": "encoder.layer.*.attention.output.LayerNorm",
    "body.layers.*.feedforward.0": "encoder.layer.*.intermediate.dense",
    "body.layers.*.feedforward.3": "encoder.layer.*.output.dense",
    "body.layers.*.norms.1": "encoder.layer.*.output.LayerNorm",
}


class PublishedWeights:
    """A model of a family in a folder or on the hub, for a tokenizer of ``pieces`` and sequences of
    at most ``max_length``.

    ``ValueError`` when there is none or it does not suit. Only safetensors are read, and code in
    the folder is not run.
    """

    def __init__(self, source: str, family: Family, pieces: int, max_length: int):
        self.source, self.family = source, family
        self.model = published_model(source, family.type, pieces, family.expected)
        self.config: Any = self.model.config
        names = SETTINGS | dict(family.settings)
        self.settings = {ours: getattr(self.config, theirs, None) for ours, theirs in names.items()}
        self.first = self.config.pad_token_id + 1 if family.after_padding else 0
        self.rows = {"table": slice(pieces), "positions": slice(self.first, self.first + max_length)}
        """Rows of their tables that are read here, by our name."""
        if max_length > self.config.max_position_embeddings - self.first:
            raise ValueError(
                f"max_length={max_length}: pretrained={source!r} has"
                f" {self.config.max_position_embeddings - self.first} positions"
            )

    @property
    def sizes(self) -> dict[str, Any]:
        """Settings of :class:`~architectures.blocks.piece_transformer.PieceTransformer`."""
        return {name: value for name, value in self.settings.items() if name != "attention_dropout"}

    def give(self, encoder: Any) -> None:
        """Put the weights into an encoder of these sizes.

        Where it has no vectors of segments, all pieces stand in the first one, whose vector is then
        added to those of the positions. Where vectors of pieces are as wide as states, some
        families have no matrix between them.
        """
        for name, place in self.family.names.items():
            count = len(encoder.body.layers) if "*" in name else 1
            for number in map(str, range(count)):
                if name == "projection" and place not in dict(self.model.named_modules()):
                    continue
                ours, theirs = name.replace("*", number), self.model.get_submodule(place.replace("*", number))
                if name == "segments" and encoder.segments is None:
                    encoder.positions.weight.data += theirs.weight.data[0]
                else:
                    encoder.get_submodule(ours).load_state_dict(self._state(name, theirs))
        for layer in encoder.body.layers:
            layer.attention.dropout = self.settings["attention_dropout"]

    def _state(self, name: str, module: nn.Module) -> dict[str, Tensor]:
        rows, turned = self.rows.get(name, slice(None)), self.family.turned and "*" in name
        state = {part: weights[rows] for part, weights in module.state_dict().items()}
        return {part: weights.T if turned and weights.dim() > 1 else weights for part, weights in state.items()}


def published_model(source: str, type: str, pieces: int, expected: Mapping[str, Any]) -> Any:
    """The model of a type of transformers in a folder or on the hub.

    ``ValueError`` when there is none, when its table has fewer rows than the ``pieces`` of its
    tokenizer, or when a setting is another than the ``expected`` one.
    """
    try:
        from transformers import AutoConfig, AutoModel  # slow to import, and an extra
    except ImportError as error:
        raise ImportError("pretrained weights need transformers: pip install 'archbench[plm]'") from error

    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
        config._attn_implementation = "eager"  # the folder may name one that is not installed; only weights are read
        model = AutoModel.from_pretrained(source, config=config, use_safetensors=True, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise MissingWeights(
            f"pretrained={source!r}: neither a folder with safetensors weights nor a name on the hub: {error}"
        ) from error
    if config.model_type != type:
        raise ValueError(f"pretrained={source!r} is of type {config.model_type}, expected {type}")
    if pieces > config.vocab_size:
        raise ValueError(
            f"pretrained={source!r}: its tokenizer has {pieces} pieces, its model vectors for {config.vocab_size}"
        )
    for name, wanted in expected.items():
        if (found := getattr(config, name, wanted)) != wanted:
            raise ValueError(f"pretrained={source!r}: {name} is {found!r} in its config.json, expected {wanted!r}")
    return model

"""Models of the library transformers with the weights of ours: references for states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from harness.views.subwords import SubwordBatch

TABLES = {
    "embeddings.word_embeddings": "table",
    "embeddings.position_embeddings": "positions",
    "embeddings.token_type_embeddings": "segments",
    "embeddings.LayerNorm": "norm",
}
"""Our names of what stands below the layers, by the library's."""
LAYER = {
    "attention.self.query": "attention.query",
    "attention.self.key": "attention.key",
    "attention.self.value": "attention.value",
    "attention.output.dense": "attention.output",
    "attention.output.LayerNorm": "norms.0",
    "intermediate.dense": "feedforward.0",
    "output.dense": "feedforward.3",
    "output.LayerNorm": "norms.1",
}
"""Our names of the parts of a layer, by the library's for BERT and ELECTRA."""


def layers(count: int) -> dict[str, str]:
    """Our names of the parts of so many layers, by the library's for BERT and ELECTRA."""
    return {
        f"encoder.layer.{number}.{theirs}": f"body.layers.{number}.{ours}"
        for number in range(count)
        for theirs, ours in LAYER.items()
    }


def outputs(reference: nn.Module, names: Mapping[str, str], model: nn.Module, pieces: SubwordBatch) -> Any:
    """What the ``reference`` makes of pieces with the parameters of ``model``, whose gradients can
    be asked of it. ``names`` are our names of the modules by those of the reference, all of whose
    parameters must be named."""
    ours = dict(model.named_parameters())
    given = {f"{theirs}.{kind}": ours.get(f"{name}.{kind}") for theirs, name in names.items() for kind in KINDS}
    weights = {name: weight for name, weight in given.items() if weight is not None}
    missing = {name for name, _ in reference.named_parameters()} ^ weights.keys()
    assert not missing, f"without a counterpart: {sorted(missing)}"
    read = {"input_ids": pieces.ids, "attention_mask": pieces.mask.long(), "token_type_ids": pieces.segments}
    return torch.func.functional_call(reference.eval(), weights, (), read)


KINDS = ("weight", "bias")

"""Models of the library transformers with the weights of ours: references for states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
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


def saved(folder: Path, reference: Any, pieces: Sequence[str]) -> Path:
    """A folder with a model and a tokenizer of word pieces, as the hub holds them."""
    import transformers

    numbers = {piece: number for number, piece in enumerate(pieces)}
    transformers.BertTokenizerFast(vocab=numbers).save_pretrained(folder)
    for weights in reference.parameters():
        if weights.dim() == 1:  # norms and biases begin alike, and nobody would see that two are exchanged
            weights.data += 0.3 * torch.randn_like(weights)
    reference.save_pretrained(folder)
    return folder


def loaded(architecture: Any, folder: Path, max_length: int = 16) -> tuple[Any, Any]:
    """Our model and its view, as the harness makes them for ``-o ID.pretrained=FOLDER``."""
    view = architecture.reads("text", {"pretrained": str(folder), "max_length": max_length})
    view.fit([])
    return architecture(view.width, view, pretrained=str(folder)).eval(), view


def assert_loads(architecture: Any, folder: Path, first: list[str], second: list[str] | None = None) -> None:
    """Assert that our model with the weights of a folder gives the states of the library's at all
    pieces of texts or pairs, and the gradients by the vectors of pieces and of positions."""
    import transformers

    ours, view = loaded(architecture, folder)
    theirs = transformers.AutoModel.from_pretrained(folder).eval()
    rows = np.arange(len(first))
    if second is None:
        batch = view.collate(view.encode(first), rows)
    else:
        batch = view.collate_pair(view.encode(first), view.encode(second), rows)
    read = {"input_ids": batch.ids, "attention_mask": batch.mask.long()}
    if ours.segments is not None:
        read["token_type_ids"] = batch.segments
    expected = theirs(**read).last_hidden_state[batch.mask]
    states = ours(batch)[batch.mask]
    torch.testing.assert_close(states, expected, rtol=1e-5, atol=1e-5)
    assert states.std() > 0.1
    weights = torch.randn_like(states)
    (states * weights).sum().backward()
    (expected * weights).sum().backward()
    tables = [module.weight for module in theirs.modules() if isinstance(module, nn.Embedding)]
    for table, of_theirs in zip((ours.table, ours.positions), tables[:2], strict=True):
        slopes = of_theirs.grad[: len(table.weight)]
        assert slopes.abs().max() > 0.1
        torch.testing.assert_close(table.weight.grad, slopes, rtol=1e-4, atol=1e-4 * float(slopes.abs().max()))

"""Weights and gradients of the GPT models of the library transformers under our names."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from harness.views.subwords import SubwordBatch

NAMES = {
    "tokens_embed": "table",
    "positions_embed": "positions",
    "wte": "table",
    "wpe": "positions",
    "ln_f": "body.norm",
}
IN_A_LAYER = {
    "attn.c_attn": "attention.queries_keys_values",
    "attn.c_proj": "attention.output",
    "mlp.c_fc": "feedforward.0",
    "mlp.c_proj": "feedforward.3",
    "ln_1": "norms.0",
    "ln_2": "norms.1",
}


def renamed(reference: nn.Module, read: Callable[[nn.Parameter], Tensor]) -> dict[str, Tensor]:
    """What is read of each parameter of such a model, by the name that it has in ours. Matrices of
    layers are the other way round there."""
    found = {}
    for name, parameter in reference.named_parameters():
        module, _, kind = name.rpartition(".")
        value = read(parameter).detach()
        if module.startswith("h."):
            _, number, part = module.split(".", 2)
            if part in IN_A_LAYER and value.dim() == 2:
                value = value.T
            module = f"body.layers.{number}.{IN_A_LAYER[part]}"
        else:
            module = NAMES[module]
        found[f"{module}.{kind}"] = value
    return found


def assert_same_states_and_gradients(ours: nn.Module, theirs: nn.Module, pieces: SubwordBatch) -> None:
    """Assert that our model with the weights of theirs gives its states at all pieces, and the
    gradients of a random projection of them."""
    ours.load_state_dict(renamed(theirs, lambda parameter: parameter))
    states = ours(pieces)[pieces.mask]
    expected = theirs(pieces.ids, attention_mask=pieces.mask.long()).last_hidden_state[pieces.mask]
    torch.testing.assert_close(states, expected, rtol=1e-5, atol=1e-5)
    weights = torch.randn_like(states)
    (states * weights).sum().backward()
    (expected * weights).sum().backward()
    gradients = renamed(theirs, lambda parameter: parameter.grad)
    assert gradients.keys() == dict(ours.named_parameters()).keys()
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name], rtol=1e-4, atol=1e-4)

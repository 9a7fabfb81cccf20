"""Weights and gradients of the GPT models of the library transformers under our names."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

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

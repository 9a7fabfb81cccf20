"""The mechanism of my model: each test fails when what defines the model is taken out."""

from __future__ import annotations

import torch

from harness import registry


def build(**hyperparameters):
    """The model on vectors of two numbers, without dropout."""
    torch.manual_seed(0)
    cls = registry.load(registry.entry("architectures", "my_model"))
    return cls(width=2, hidden=4, **hyperparameters).eval()


def test_the_context_is_the_source_state_that_the_decoder_resembles():
    model = build(symbols=5)
    state = model.start(torch.zeros(1, 2, 2), torch.ones(1, 2, dtype=torch.bool))
    state = state._replace(hidden=torch.tensor([[0.0, 9.0, 0.0, 0.0]]), source=9 * torch.eye(4)[None, :2])
    model.decoder.forward = lambda inputs, hidden: inputs[:, 4:]  # the context, behind the symbol's vector
    assert torch.allclose(model.advance(torch.tensor([1]), state)[1].hidden, state.source[:, 1])


def test_writing_step_by_step_is_reading_the_prefix_at_once():
    model, prefix = build(symbols=5), torch.tensor([[1, 3, 4]])
    source = torch.randn(1, 4, 2), torch.ones(1, 4, dtype=torch.bool)
    state = model.start(*source)
    for position in range(3):
        scores, state = model.step(prefix[:, position], state)
    assert torch.allclose(scores, model(*source, prefix)[:, -1].log_softmax(-1), atol=1e-6)

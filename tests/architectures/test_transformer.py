"""The mechanism of the transformer encoder: attention among all real positions, norms behind the
sums, sinusoidal positions."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from architectures.blocks.positions import sinusoids
from architectures.blocks.transformer import Attention
from architectures.transformer.transformer import TransformerEncoder
from harness import registry
from harness.problems.classify import text_vector
from harness.training.optimizers import learning_rate_factor
from tests.support.batches import assert_each_alone, mask_of, random_texts, random_vectors
from tests.support.models import small
from tests.support.oracles import softmax_mean
from tests.support.same import assert_same

SIZE, HEADS, INNER = 8, 2, 12
LENGTHS = (7, 3, 1)


def model_of(width: int = SIZE, **settings) -> TransformerEncoder:
    return small(TransformerEncoder, width, SIZE, HEADS, inner=INNER, stretch=1.0, **settings)


def texts(width: int = SIZE) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors and mask of three texts."""
    return random_vectors(LENGTHS, 1, width)


def positions(length: int, size: int) -> torch.Tensor:
    """A sine and a cosine of each wavelength at each position, one by one."""
    return torch.tensor(
        [
            [(math.cos if k % 2 else math.sin)(i / 10000 ** ((k - k % 2) / size)) for k in range(size)]
            for i in range(length)
        ]
    )


def torchs_layers(model: TransformerEncoder) -> list[nn.TransformerEncoderLayer]:
    """PyTorch's post-norm layers with the weights of the model."""
    layers = []
    for layer in model.body.layers:
        reference = nn.TransformerEncoderLayer(
            SIZE, HEADS, INNER, batch_first=True, norm_first=False, activation="relu"
        ).eval()
        pairs = {
            "self_attn.in_proj_": layer.attention.queries_keys_values,
            "self_attn.out_proj.": layer.attention.output,
            "linear1.": layer.feedforward[0],
            "linear2.": layer.feedforward[-1],
            "norm1.": layer.norms[0],
            "norm2.": layer.norms[1],
        }
        reference.load_state_dict(
            {prefix + kind: getattr(module, kind) for prefix, module in pairs.items() for kind in ("weight", "bias")},
            assign=True,  # the model's own, which gradients reach
        )
        layers.append(reference)
    return layers


def test_states_are_those_of_torchs_post_norm_layers_on_scaled_vectors_with_positions():
    """Large numbers at padding change no real state."""
    model = model_of(layers=3)
    layers = torchs_layers(model)
    assert len(layers) == 3

    def written_out(vectors: torch.Tensor) -> torch.Tensor:
        states = (vectors * math.sqrt(SIZE) + positions(len(vectors), SIZE))[None]
        for layer in layers:
            states = layer(states)
        return states[0]

    batch = texts()
    assert_each_alone(model(*batch), written_out, batch, states=True, atol=1e-5, rtol=1e-5)


def test_attention_is_a_softmax_of_scaled_dot_products_in_each_head():
    attention, states = small(Attention, SIZE, HEADS, joint=True), texts()[0][0]
    joint = attention.queries_keys_values
    queries, keys, values = (states @ joint.weight.T + joint.bias).chunk(3, dim=1)
    size, heads = SIZE // HEADS, []
    for head in range(HEADS):
        part = slice(head * size, (head + 1) * size)
        scores = [[q @ k / math.sqrt(size) for k in keys[:, part]] for q in queries[:, part]]
        heads.append(torch.stack([softmax_mean(row, values[:, part]) for row in scores]))
    expected = torch.cat(heads, dim=1) @ attention.output.weight.T + attention.output.bias
    assert_same(attention(states[None], allowed=mask_of([7])[:, None, None])[0], expected)


def test_a_position_vector_has_a_sine_and_a_cosine_of_each_wavelength():
    """Also of an odd size, which ends on a sine: frames and merged inputs have any width."""
    for size in (6, 5):
        torch.testing.assert_close(sinusoids(50, size, torch.empty(0)), positions(50, size), atol=1e-5, rtol=1e-5)
    assert sinusoids(3, 4, torch.empty(0, dtype=torch.float64)).dtype == torch.float64


def test_what_stands_at_padding_changes_no_real_state():
    model, batch = model_of(), texts()
    assert_each_alone(model(*batch), lambda text: model(text[None], mask_of([len(text)]))[0], batch, states=True)


def test_a_text_without_positions_spoils_nothing():
    """A softmax over nothing is NaN, which a gradient carries into every weight."""
    model = model_of()
    batch = random_texts(LENGTHS, 1, SIZE)
    mask = batch.mask & torch.tensor([[True], [True], [False]])
    pooled = text_vector(model, batch._replace(mask=mask, lengths=mask.sum(1)))
    pooled.sum().backward()
    assert pooled.isfinite().all() and not pooled[2].any()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_the_order_of_words_matters():
    """Attention alone is blind to it."""
    model, (vectors, mask) = model_of(), random_vectors([7], 1, SIZE)
    assert not torch.allclose(model(vectors.flip(1), mask).flip(1), model(vectors, mask), atol=1e-2)


def test_vectors_of_another_width_are_mapped_to_the_models():
    model = model_of(width=5)
    assert model(*texts(5)).shape == (3, 7, SIZE)
    assert model.projection.weight.shape == (SIZE, 5)
    assert not list(model_of().projection.parameters())


def training(layers: int = 2, **settings) -> TransformerEncoder:
    """A model in training, whose last layer norm lets its dropout be seen."""
    return model_of(layers=layers, **settings).train()


def test_the_sums_of_vectors_and_positions_are_dropped():
    """Together: with all of them dropped no layer is told anything."""
    model, (vectors, mask) = training(dropout=1.0), texts()
    seen: list[torch.Tensor] = []
    model.body.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    model(vectors, mask)
    assert not seen[0].any()
    model.dropout.p = 0.0
    model(vectors, mask)
    assert_same(seen[1], vectors * math.sqrt(SIZE) + positions(7, SIZE))


def test_what_a_sublayer_adds_is_dropped_and_what_it_is_added_to_is_not():
    """With everything dropped that is added, the norms alone are left: those of the sums, one after
    the other."""
    model, (vectors, mask) = training(dropout=1.0), texts()
    model.dropout.p = 0.0
    states = vectors * math.sqrt(SIZE) + positions(7, SIZE)
    for layer in model.body.layers:
        for norm in layer.norms:
            mean, variance = states.mean(-1, keepdim=True), states.var(-1, correction=0, keepdim=True)
            states = (states - mean) / (variance + 1e-5).sqrt() * norm.weight + norm.bias
    assert_same(model(vectors, mask), states, atol=1e-4, rtol=1e-4)


def test_attention_weights_and_inner_units_are_not_dropped():
    """The paper drops the sums and what sublayers add; later code drops these too, which is another
    model to train."""
    model, (vectors, mask) = training(dropout=0.9), texts()
    model.dropout.p = 0.0
    for layer in model.body.layers:
        layer.dropout.p = 0.0
    trained = model(vectors, mask)
    assert_same(trained, model.eval()(vectors, mask))


def test_the_recipe_leaves_its_warm_up_on_a_small_task():
    """SST-2 has about 109 batches of 64 texts. 4,000 steps of warm-up would end the training at
    half of the highest rate, without the decay that the schedule is named for."""
    recipe = registry.entry("architectures", "transformer").recipe
    steps = 109 * recipe.epochs
    rates = [learning_rate_factor(recipe, 109)(step) for step in range(steps)]
    assert max(rates) == pytest.approx(1, rel=0.02) and rates.index(max(rates)) < steps / 20
    assert rates[-1] < 0.25


def test_a_texts_vector_is_the_mean_of_its_states():
    model, batch = model_of(), random_texts(LENGTHS, 1, SIZE)
    states = model(batch.vectors, batch.mask)
    assert_each_alone(text_vector(model, batch), lambda own: own.mean(0), (states, batch.mask))


def test_a_size_that_heads_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="size=10 cannot be divided among heads=4"):
        TransformerEncoder(10, size=10, heads=4)

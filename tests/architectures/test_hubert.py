"""HuBERT and WavLM: masked frames, places from a convolution and a transformer, against loops."""

from __future__ import annotations

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.blocks.objectives.masked_codes import MaskedCodes, MaskedCodesOfMixtures
from architectures.speech.hubert import HuBERT, WavLM
from harness import registry
from harness.views.coded_frames import CodedFrames
from tests.support.models import small
from tests.support.same import assert_same

SIZES = {"size": 4, "heads": 2, "layers": 2, "inner": 6, "reach": 4, "groups": 2, "dropout": 0.0}


def frames(*lengths: int) -> tuple[Tensor, Tensor]:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    vectors = torch.randn(*mask.shape, 5, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    return vectors * mask[..., None], mask


def normed(norm: torch.nn.LayerNorm, x: Tensor) -> Tensor:
    centred = x - x.mean()
    return norm.weight * centred / (centred.square().mean() + norm.eps).sqrt() + norm.bias


def by_loops(model: HuBERT, vectors: Tensor, hidden: set[int]) -> Tensor:
    """States (T, size) of one recording."""
    inputs = [
        model.masked if t in hidden else model.project.weight @ normed(model.norm, x) + model.project.bias
        for t, x in enumerate(vectors)
    ]
    places, weight = [], model.places.convolution.weight  # (size, size / groups, reach)
    for t in range(len(inputs)):
        total = [model.places.convolution.bias[o] for o in range(4)]
        for offset in range(4):
            source = t + offset - 2
            if 0 <= source < len(inputs):
                for o in range(4):
                    group = o // 2 * 2
                    total[o] = total[o] + weight[o, :, offset] @ inputs[source][group : group + 2]
        places.append(F.gelu(torch.stack(total)))
    states = [normed(model.places_norm, x + p) for x, p in zip(inputs, places, strict=True)]
    for layer in model.body.layers:
        a = layer.attention
        q, k, v = ([part(x) for x in states] for part in (a.query, a.key, a.value))
        told = []
        for t in range(len(states)):
            heads = []
            for h in (slice(0, 2), slice(2, 4)):
                weights = torch.stack([q[t][h] @ each[h] / math.sqrt(2) for each in k]).exp()
                heads.append(sum(w * each[h] for w, each in zip(weights / weights.sum(), v, strict=True)))
            told.append(normed(layer.norms[0], states[t] + a.output(torch.cat(heads))))
        first, last = layer.feedforward[0], layer.feedforward[-1]
        states = [normed(layer.norms[1], x + last(F.gelu(first(x)))) for x in told]
    return torch.stack(states)


def test_states_are_those_of_loops():
    """With a masked frame, two recordings and padding; norms stand behind the sums."""
    model = small(HuBERT, 5, CodedFrames(), stretch=2.0, **SIZES).double()
    vectors, mask = frames(6, 4)
    hidden = torch.zeros_like(mask)
    hidden[0, 2] = hidden[1, 0] = True
    found = model.states(vectors, mask, hidden)
    assert_same(found[0], by_loops(model, vectors[0], {2}), rtol=1e-6, atol=1e-6)
    assert_same(found[1, :4], by_loops(model, vectors[1, :4], {0}), rtol=1e-6, atol=1e-6)


def test_a_masked_frame_is_not_heard():
    """Its code would be told by itself."""
    model = small(HuBERT, 5, CodedFrames(), **SIZES).double()
    vectors, mask = frames(6)
    hidden = torch.zeros_like(mask)
    hidden[0, 3] = True
    changed = vectors.clone()
    changed[0, 3] = 9.0
    torch.testing.assert_close(model.states(changed, mask, hidden), model.states(vectors, mask, hidden))
    assert not torch.allclose(model(changed, mask), model(vectors, mask))


def test_labels_are_read_without_masks():
    """The states of a task are those of whole recordings."""
    model = small(HuBERT, 5, CodedFrames(), **SIZES).double()
    vectors, mask = frames(6, 4)
    torch.testing.assert_close(model(vectors, mask), model.states(vectors, mask, torch.zeros_like(mask)))


def test_the_deviations_of_stacked_frames_follow_one_another():
    """Powers of a mixture are added on the scale on which they were measured."""
    view = CodedFrames(stack=2)
    view.mean, view.deviation = torch.tensor([1.0, 2.0]).numpy(), torch.tensor([3.0, 4.0]).numpy()
    mean, deviation = small(HuBERT, 4, view, **SIZES).scale(torch.zeros(1))
    assert (mean.tolist(), deviation.tolist()) == ([1, 2, 1, 2], [3, 4, 3, 4])


def test_ids_have_their_objectives_and_all_weights_go_on():
    """WavLM is HuBERT that has learnt from mixtures."""
    assert (HuBERT.learns, WavLM.learns) == (MaskedCodes, MaskedCodesOfMixtures)
    for id, cls in (("hubert", HuBERT), ("wavlm", WavLM)):
        entry = registry.entry("architectures", id)
        assert registry.load(entry) is cls and dict(entry.parents) == {"weights": f"{id}@audio_mix"}
    parent, child = (small(HuBERT, 5, CodedFrames(), stretch=s, **SIZES) for s in (3.0, None))
    child.inherit("weights", SimpleNamespace(model=SimpleNamespace(encoder=parent)), [])
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(child.parameters(), parent.parameters(), strict=True))
    assert all(p.requires_grad for p in child.parameters())


def test_default_sizes_are_declared():
    """The convolution that tells places is the paper's: 128 frames in 16 groups."""
    model = HuBERT(82, CodedFrames())
    convolution = model.places.convolution
    assert (convolution.kernel_size, convolution.groups, model.view.codes) == ((128,), 16, 100)
    assert len(model.body.layers) == 4 and model.body.heads == 4 and model.size == 128
    assert model.body.layers[0].feedforward[0].out_features == 512 and model.dropout.p == 0.1

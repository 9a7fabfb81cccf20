"""The CRF layer against enumeration of all label sequences and against pytorch-crf."""

from __future__ import annotations

import itertools

import pytest
import torch
import torchcrf
from torch import Tensor

from harness.layers import crf as crf_module
from harness.layers.crf import LinearChainCRF, transition_constraints
from tests.support.same import assert_same

BIOES = ["O", "B-A", "I-A", "E-A", "S-A", "B-B", "I-B", "E-B", "S-B"]


def random_crf(
    labels: int, seed: int = 0, forbidden=None, spread: float = 1.0, dtype: torch.dtype = torch.float64
) -> LinearChainCRF:
    torch.manual_seed(seed)
    crf = LinearChainCRF(labels, forbidden).to(dtype)
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter, std=spread)
    return crf


def random_batch(
    lengths: list[int], labels: int, seed: int = 0, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    """Emissions (B,T,L), tags (B,T), mask (B,T)."""
    generator = torch.Generator().manual_seed(seed)
    size = len(lengths), max(lengths)
    emissions = torch.randn(*size, labels, generator=generator, dtype=torch.float64).to(dtype)
    return (
        emissions,
        torch.randint(labels, size, generator=generator),
        torch.arange(size[1]) < torch.tensor(lengths).unsqueeze(1),
    )


def enumerated(
    crf: LinearChainCRF, emissions: Tensor, constrained: bool = False
) -> tuple[list[tuple[int, ...]], Tensor]:
    """All label sequences for the emissions (T,L) of one sentence, and the score of each, added up
    term by term."""
    transitions, start, end = crf.transitions.clone(), crf.start.clone(), crf.end.clone()
    if constrained:
        transitions[crf.forbidden_transitions] = start[crf.forbidden_start] = end[crf.forbidden_end] = -torch.inf
    sequences = list(itertools.product(range(emissions.shape[1]), repeat=len(emissions)))
    scores = [
        start[tags[0]]
        + sum(emissions[t, tag] for t, tag in enumerate(tags))
        + sum(transitions[pair] for pair in itertools.pairwise(tags))
        + end[tags[-1]]
        for tags in sequences
    ]
    return sequences, torch.stack(scores)


LENGTHS = [5, 1, 3]


@pytest.mark.parametrize("constrained", [False, True])
def test_log_partition_is_the_sum_over_all_label_sequences(constrained):
    """A wrong forward recursion, masked length, start or end score would train every tagger on a
    wrong loss."""
    crf = random_crf(4, forbidden=transition_constraints(["O", "B-A", "I-A", "B-B"], "BIO"))
    emissions, _, mask = random_batch(LENGTHS, 4)
    emissions.requires_grad_()
    expected = [enumerated(crf, emissions[i, :n], constrained)[1].logsumexp(0) for i, n in enumerate(LENGTHS)]
    assert_same(crf.log_partition(emissions, mask, constrained), torch.stack(expected))


@pytest.mark.parametrize("constrained", [False, True])
def test_viterbi_finds_the_best_of_all_label_sequences(constrained):
    """A wrong back-pointer or length would give users labels that are not the model's best."""
    crf = random_crf(4, forbidden=transition_constraints(["O", "B-A", "I-A", "B-B"], "BIO"))
    emissions, _, mask = random_batch(LENGTHS, 4, seed=1)
    decoded = crf.viterbi(emissions, mask, constrained)
    assert decoded.dtype == torch.long
    for i, n in enumerate(LENGTHS):
        sequences, scores = enumerated(crf, emissions[i, :n], constrained)
        assert tuple(decoded[i, :n].tolist()) == sequences[scores.argmax()]
        assert not decoded[i, n:].any(), "padding must be label 0"


def test_viterbi_takes_the_first_label_among_equal_scores():
    """Untrained or symmetric models must decode alike on every machine: ties go to the first label,
    the last position first."""
    crf = LinearChainCRF(3)
    emissions = torch.tensor([[[0.0, 1, 1], [1, 1, 0], [0, 2, 2], [0, 0, 0]]])
    assert crf.viterbi(emissions, torch.ones(1, 4, dtype=torch.bool)).tolist() == [[1, 0, 1, 0]]
    with torch.no_grad():  # 0-1 and 1-0 tie: the last position decides first.
        crf.transitions[0, 1] = crf.transitions[1, 0] = 1
    assert crf.viterbi(torch.zeros(1, 2, 3), torch.ones(1, 2, dtype=torch.bool)).tolist() == [[1, 0]]


@pytest.mark.parametrize("labels", [2, 9])
def test_equals_pytorch_crf(labels):
    """The published BiLSTM-CRF results come from this model: same loss, same gradients, same
    labels."""
    crf = random_crf(labels, seed=3)
    peer = torchcrf.CRF(labels, batch_first=True).double()
    with torch.no_grad():
        peer.transitions.copy_(crf.transitions)
        peer.start_transitions.copy_(crf.start)
        peer.end_transitions.copy_(crf.end)
    lengths = [12, 1, 7, 12, 2, *[10] * 30]
    emissions, tags, mask = random_batch(lengths, labels, seed=4)
    ours, theirs = emissions.clone().requires_grad_(), emissions.clone().requires_grad_()
    loss, peer_loss = crf.loss(ours, tags, mask), -peer(theirs, tags, mask, reduction="mean")
    torch.testing.assert_close(loss, peer_loss)
    loss.backward()
    peer_loss.backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
    for parameter, other in (
        (crf.transitions, peer.transitions),
        (crf.start, peer.start_transitions),
        (crf.end, peer.end_transitions),
    ):
        torch.testing.assert_close(parameter.grad, other.grad)
    assert [row[:n].tolist() for row, n in zip(crf.viterbi(emissions, mask), lengths, strict=True)] == peer.decode(
        emissions, mask
    )


@pytest.mark.parametrize("constrained", [False, True])
def test_marginals_are_the_share_of_the_label_sequences_with_that_label(constrained):
    """Confidence figures and posterior decoding read these: they must sum to 1 and agree with
    enumeration."""
    crf = random_crf(4, seed=5, forbidden=transition_constraints(["O", "B-A", "I-A", "B-B"], "BIO"))
    emissions, _, mask = random_batch(LENGTHS, 4, seed=6)
    marginals = crf.marginals(emissions, mask, constrained)
    torch.testing.assert_close(marginals.sum(2), mask.double())
    for i, n in enumerate(LENGTHS):
        sequences, scores = enumerated(crf, emissions[i, :n], constrained)
        chosen = torch.nn.functional.one_hot(torch.tensor(sequences), 4).double()
        torch.testing.assert_close(marginals[i, :n], torch.einsum("s,stl->tl", scores.softmax(0), chosen))


def test_marginals_are_the_gradient_of_log_partition_also_in_inference_mode():
    """Evaluation runs in inference mode, where a gradient is not to be had unless the layer asks
    for it."""
    crf = random_crf(3, seed=7)
    emissions, _, mask = random_batch([4, 2], 3)
    with torch.inference_mode():
        marginals = crf.marginals(emissions * 1, mask.clone())
    emissions.requires_grad_()
    crf.log_partition(emissions, mask).sum().backward()
    torch.testing.assert_close(marginals.clone(), emissions.grad)
    assert all(parameter.grad is not None for parameter in crf.parameters())


def test_padding_changes_nothing():
    """A sentence must score and decode the same alone and beside a longer one, whatever the encoder
    left in the padding."""
    crf = random_crf(4, seed=8)
    emissions, tags, mask = random_batch([3, 6], 4)
    emissions[0, 3:], tags[0, 3:] = torch.nan, -100
    emissions.requires_grad_()
    alone, alone_tags, alone_mask = emissions[:1, :3], tags[:1, :3], mask[:1, :3]
    torch.testing.assert_close(crf.log_partition(emissions, mask)[:1], crf.log_partition(alone, alone_mask))
    torch.testing.assert_close(crf.score(emissions, tags, mask)[:1], crf.score(alone, alone_tags, alone_mask))
    assert torch.equal(crf.viterbi(emissions, mask)[:1, :3], crf.viterbi(alone, alone_mask))
    crf.loss(emissions, tags, mask).backward()
    assert emissions.grad.isfinite().all()
    assert not emissions.grad[0, 3:].any()


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("lengths", [[4, 1, 2], [1, 1]])
def test_gradient_is_that_of_finite_differences(constrained, lengths):
    """The backward pass is written by hand: no rescaling, end of a row or filled -inf may bend the
    gradient of any parameter."""
    crf = random_crf(3, seed=9, forbidden=transition_constraints(["O", "B-A", "I-A"], "BIO"))
    emissions, _, mask = random_batch(lengths, 3)
    tags = torch.tensor([[1, 2, 0, 0], [0, 0, 0, 0], [1, 2, 0, 0]])[: len(lengths), : max(lengths)]
    names = list(dict(crf.named_parameters()))

    def loss(emissions, *parameters):
        state = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(
            _Loss(crf, tags, mask, constrained), {f"crf.{name}": p for name, p in state.items()}, emissions
        )

    assert torch.autograd.gradcheck(loss, (emissions.requires_grad_(), *crf.parameters()))
    # Sentence by sentence: in the mean, all have the same weight.
    assert torch.autograd.gradcheck(lambda emissions: crf.log_partition(emissions, mask, constrained), emissions)


class _Loss(torch.nn.Module):
    def __init__(self, crf, tags, mask, constrained):
        super().__init__()
        self.crf, self.rest = crf, (tags, mask, constrained)

    def forward(self, emissions):
        return self.crf.loss(emissions, *self.rest)


def test_large_scores_in_float32_stay_exact_and_finite():
    """A confident encoder must not end in inf or NaN: compared with float64, at scores far outside
    the range of exp."""
    emissions, tags, mask = random_batch([6, 1, 4], 5, dtype=torch.float32)
    single, double = random_crf(5, spread=300, dtype=torch.float32), random_crf(5, spread=300)
    double.load_state_dict(single.state_dict())
    emissions = (emissions * 1000).requires_grad_()
    loss = single.loss(emissions, tags, mask)
    torch.testing.assert_close(loss, double.loss(emissions.double(), tags, mask).float())
    loss.backward()
    assert all(gradient.isfinite().all() for gradient in (emissions.grad, *(p.grad for p in single.parameters())))


@pytest.mark.parametrize(
    ("transitions", "emissions"),
    [
        ([[0.0, -500.0], [0.0, 0.0]], [[0.0, -200.0], [0.0, 0.0], [0.0, 900.0]]),
        ([[0.0, -60.0], [0.0, 60.0]], [[0.0, -110.0], [0.0, 200.0], [0.0, 0.0]]),
        # The best score at the second place comes by a weight of e^-60, by which all sums behind it
        # are scaled up: what underflowed beside it seems large.
        (
            [[0.0, -60.0, 0.0], [0.0, 0.0, -65.0], [0.0, 0.0, 0.0]],
            [[0.0, -300.0, -300.0], [0.0, 105.0, -300.0], [0.0, 0.0, 200.0]],
        ),
    ],
)
def test_a_path_that_underflows_beside_the_best_one_and_wins_later_is_counted(transitions, emissions):
    """exp of a score 110 below the best is 0 in float32; a transition or a later emission can still
    make that path the one that matters."""
    crf = LinearChainCRF(len(transitions))
    with torch.no_grad():
        crf.transitions.copy_(torch.tensor(transitions))
    emissions = torch.tensor([emissions], requires_grad=True)
    log_partition = crf.log_partition(emissions, torch.ones(1, 3, dtype=torch.bool))
    sequences, scores = enumerated(crf, emissions[0].detach())
    torch.testing.assert_close(log_partition, scores.logsumexp(0, keepdim=True))
    log_partition.sum().backward()
    through_1 = (torch.tensor(sequences) == 1).T.float() @ scores.softmax(0)
    torch.testing.assert_close(emissions.grad[0, :, 1], through_1)


def test_both_forward_recursions_agree_and_the_fast_one_serves_ordinary_scores(monkeypatch):
    """The exact recursion is only a refuge: were it used always, training would be several times
    slower without any error."""
    crf = random_crf(9, seed=10, forbidden=transition_constraints(BIOES), spread=5)
    emissions, _, mask = random_batch([30, 8], 9)
    emissions = emissions * 10
    monkeypatch.setattr(crf_module, "_forward_by_logsumexp", lambda *_: pytest.fail("the slow recursion was used"))
    fast = [crf.log_partition(emissions, mask, constrained) for constrained in (False, True)]
    monkeypatch.undo()
    monkeypatch.setattr(crf_module, "_forward_by_matmul", lambda *_: None)
    for constrained, expected in zip((False, True), fast, strict=True):
        assert_same(crf.log_partition(emissions, mask, constrained), expected)


def test_half_precision_emissions_are_summed_in_the_parameters_precision():
    """Under autocast the encoder hands over bfloat16, whose sums over a sentence would be off in
    the second digit."""
    crf = random_crf(5, seed=11, dtype=torch.float32)
    emissions, tags, mask = random_batch([20, 11], 5, dtype=torch.bfloat16)
    expected = crf.loss(emissions.float(), tags, mask)
    with torch.autocast("cpu", torch.bfloat16):
        assert_same(crf.loss(emissions, tags, mask), expected)


@pytest.mark.parametrize("seed", range(5))
def test_constraints_are_never_violated(seed):
    """Chunks that open without closing, or change their type inside, lose span F1 that the
    constraint promises."""
    crf = random_crf(len(BIOES), seed, transition_constraints(BIOES), spread=5)
    lengths = [15, 1, 2, 9]
    emissions, _, mask = random_batch(lengths, len(BIOES), seed)
    emissions = emissions * 5
    decoded, free = crf.viterbi(emissions, mask), crf.viterbi(emissions, mask, constrained=False)
    assert all(_is_bioes([BIOES[tag] for tag in row[:n]]) for row, n in zip(decoded, lengths, strict=True))
    assert not all(_is_bioes([BIOES[tag] for tag in row[:n]]) for row, n in zip(free, lengths, strict=True)), (
        "the case shows nothing"
    )
    marginals = crf.marginals(emissions, mask)
    assert not marginals[:, 0, crf.forbidden_start].any()
    assert marginals.isfinite().all()


def _is_bioes(labels: list[str]) -> bool:
    """Whether B I* E runs of one type, S and O make up the labels."""
    chunk = None
    for label in labels:
        prefix, _, name = label.partition("-")
        if (prefix in "IE") != (chunk is not None) or (chunk and name != chunk):
            return False
        chunk = name if prefix in "BI" else None
    return chunk is None


@pytest.mark.parametrize(
    ("scheme", "labels", "well_formed"),
    [
        ("BIOES", ["O", "B-A", "I-A", "E-A", "S-A", "E-B", "B-B"], _is_bioes),
        ("BIO", ["O", "B-A", "I-A", "I-B", "B-B"], lambda labels: _is_iob2(labels)),
    ],
)
def test_constraints_allow_exactly_the_well_formed_sequences(scheme, labels, well_formed):
    """One transition too many forbids gold labels, one too few lets malformed chunks through: all
    sequences of up to 3 labels."""
    transitions, start, end = transition_constraints(labels, scheme)
    for length in (1, 2, 3):
        for tags in itertools.product(range(len(labels)), repeat=length):
            allowed = not (
                start[tags[0]] or end[tags[-1]] or any(transitions[pair] for pair in itertools.pairwise(tags))
            )
            assert allowed == well_formed([labels[tag] for tag in tags]), tags


def _is_iob2(labels: list[str]) -> bool:
    return all(not now.startswith("I") or before[1:] == now[1:] for before, now in itertools.pairwise(["O", *labels]))


def test_constrained_training_gives_forbidden_sequences_no_probability():
    """By choice the training too knows the scheme: log Z then counts the allowed sequences alone,
    and every gradient is finite."""
    labels = ["O", "B-A", "I-A"]
    crf = LinearChainCRF(3, transition_constraints(labels, "BIO"))
    emissions, mask = torch.zeros(1, 2, 3, requires_grad=True), torch.ones(1, 2, dtype=torch.bool)
    loss = crf.loss(emissions, torch.tensor([[1, 2]]), mask, constrained=True)
    torch.testing.assert_close(loss, torch.tensor(5.0).log())  # O O, O B, B O, B B, B I
    loss.backward()
    assert all(gradient.isfinite().all() for gradient in (emissions.grad, *(p.grad for p in crf.parameters())))
    assert crf.transitions.grad[0, 2] == 0


def test_a_label_nothing_leads_to_keeps_the_gradient_finite():
    """A label set drawn from a small training set may hold I-A without B-A: such a label is
    unreachable, not NaN."""
    crf = LinearChainCRF(3, transition_constraints(["O", "I-A", "B-B"], "BIO"))
    emissions = torch.zeros(2, 3, 3, requires_grad=True)
    log_partition = crf.log_partition(emissions, torch.tensor([[1, 1, 1], [1, 0, 0]]).bool(), constrained=True)
    torch.testing.assert_close(log_partition, torch.tensor([8.0, 2.0]).log())
    log_partition.sum().backward()
    assert emissions.grad.isfinite().all()
    assert crf.transitions.grad.isfinite().all()


def test_what_the_constraints_make_impossible_is_said():
    """Silently, these would be a loss of inf in the middle of a run, or a decoded sequence that
    breaks the constraint."""
    crf = LinearChainCRF(3, transition_constraints(["O", "B-A", "I-A"], "BIO"))
    mask = torch.ones(2, 2, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"forbid the gold labels \[0, 2\] of row 1"):
        crf.loss(torch.zeros(2, 2, 3), torch.tensor([[0, 0], [0, 2]]), mask, constrained=True)
    nothing = LinearChainCRF(2, torch.ones(2, 2, dtype=torch.bool))
    with pytest.raises(ValueError, match="no label sequence of length 2"):
        nothing.viterbi(torch.zeros(2, 2, 2), torch.tensor([[1, 0], [1, 1]]).bool())


@pytest.mark.parametrize(
    ("labels", "scheme", "message"),
    [
        (["O", "S-A"], "BIO", "'S-A' does not belong to BIO"),
        (["O", "B"], "BIOES", "'B' does not belong to BIOES"),
        (["NN", "VB"], "BIOES", "'NN' does not belong to BIOES"),
        (["O"], "IOB1", "neither 'BIO' nor 'BIOES'"),
    ],
)
def test_labels_outside_the_scheme_are_named(labels, scheme, message):
    """POS labels, or BIO labels read as BIOES, would otherwise be constrained at random."""
    with pytest.raises(ValueError, match=message):
        transition_constraints(labels, scheme)


def test_constraints_for_other_labels_are_refused():
    """A constraint matrix of another label set would index past the labels or bind the wrong
    ones."""
    with pytest.raises(ValueError, match=r"for \(9, 9\) labels, the CRF has 4"):
        LinearChainCRF(4, transition_constraints(BIOES))

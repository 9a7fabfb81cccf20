"""Plugins that cheat fail the check that is named after what they do, and honest twins pass it."""

from __future__ import annotations

import signal
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import psutil
import pytest
import torch
from threadpoolctl import threadpool_limits

from harness import contract, registry
from harness.contract.base import run
from harness.contract.process import VARIABLES, Watch
from harness.problems import problem


class Failed(Protocol):
    """Messages by name of the checks that a plugin's source fails on the first task that it fits;
    with or without those that need a training."""

    def __call__(self, source: str, learning: bool = True) -> dict[str, str]: ...


IN_ANOTHER = "answers the same in another process"
"""Name of a check that starts a process, which costs seconds: it has tests of its own."""


@pytest.fixture
def failed(entry: Callable[[str], registry.Entry]) -> Failed:
    def check(source: str, learning: bool = True) -> dict[str, str]:
        case = next(contract.cases(entry(source)))
        results = [run(name, body) for name, body in case.checks(learning) if name != IN_ANOTHER]
        return {result.name: result.message for result in results if not result.passed}

    return check


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], registry.Entry]:
    """The entry of a plugin's source."""

    def write(source: str) -> registry.Entry:
        file = tmp_path / "plugin_that_may_cheat.py"
        file.write_text(textwrap.dedent(source))
        monkeypatch.setattr("harness.registry.finding._plugins", [file])
        return registry.entry("architectures", "plugin_that_may_cheat")

    return write


@pytest.fixture
def as_before() -> Iterator[None]:
    """What a plugin of these tests does to the process is undone."""
    pools = threadpool_limits()
    threads, handler, children = torch.get_num_threads(), signal.getsignal(signal.SIGTERM), psutil.Process().children()
    with pytest.MonkeyPatch.context() as patch:
        for name in VARIABLES:
            patch.setenv(name, "1")
        yield
    pools.restore_original_limits()
    torch.set_num_threads(threads)
    torch.set_default_dtype(torch.float32)
    signal.signal(signal.SIGTERM, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    for child in psutil.Process().children():
        if child not in children:
            child.kill()
            child.wait()


# --- systems without gradient training ---

FITTED = """
import os, random, secrets, signal, threading, time, zlib
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from harness.kinds import Estimator
from harness.registry import register
from harness.views.base import words_of

KEPT = []

@register("plugin_that_may_cheat", name="Test", kind="fit", paper="none", source="test", year=2026)
class Plugin(Estimator):
    '''Words vote for the classes in whose texts they stood; one text in seven is answered by lot.
    Nothing is kept of a word that is asked for first: which words are asked for is by lot too.'''
    transductive = {transductive}
    from_dev = {from_dev}

    def fit(self, train, dev, unlabelled=()):
        rows, self.lot, self.told = train, None, {{}}
        {fit}
        self.labels = sorted({{row["label"] for row in train}})
        self.votes, sizes = defaultdict(Counter), Counter()
        for row in rows:
            sizes[row["label"]] += 1
            for word in set(words_of(row["text"])):
                self.votes[word][row["label"]] += 1
        self.sizes = sizes

    def answer(self, row):
        if self.lot is not None and zlib.crc32(f"{{row['id']}} {{self.lot}}".encode()) % 7 == 0:
            return self.labels[0]
        scores = Counter(dict.fromkeys(self.labels, 0.0))
        for word in set(words_of(row["text"])):
            votes = self.votes.get(word, {{}})
            for label, count in votes.items():
                scores[label] += count / self.sizes[label] / sum(votes.values())
        return max(self.labels, key=scores.get)

    def predict(self, rows):
        {predict}
        return [self.told.get(row["text"]) or self.answer(row) for row in rows]
"""


def fitted(fit: str, transductive: bool = False, from_dev: tuple[str, ...] = (), predict: str = "pass") -> str:
    """The source of a system with a line of its own in ``fit``, and one in ``predict``."""
    return FITTED.format(fit=fit, transductive=transductive, from_dev=from_dev, predict=predict)


@pytest.mark.parametrize(
    "line",
    [
        "pass",
        "self.lot = np.random.default_rng(self.seed).integers(1000)",
        "self.lot = np.random.default_rng([7, self.seed]).integers(1000)",
        "self.lot = random.Random(self.seed).random()",
        "KEPT or KEPT.append(np.random.Generator(np.random.PCG64(self.seed))); np.random.default_rng(KEPT[0])",
        "with ThreadPoolExecutor(1) as pool: pool.submit(time.sleep, 0.02)",
        "before = torch.get_num_threads(); torch.set_num_threads(before + 1); torch.set_num_threads(before)",
        "before = signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGTERM, before)",
    ],
)
def test_an_honest_system_passes(failed: Failed, line: str) -> None:
    """One with random numbers of its own seed, a thread that ends, settings that are put back."""
    assert failed(fitted(line)) == {}


@pytest.mark.parametrize(("from_dev", "checks"), [(("seen",), set()), ((), {"dev changes nothing"})])
@pytest.mark.parametrize(
    ("line", "transductive"),
    [
        ("self.seen = Counter(row['label'] for row in dev)", False),
        ("self.seen = {row['text'] for row in (*train, *dev, *unlabelled)}", True),
    ],
)
def test_a_system_says_what_it_takes_from_dev(failed: Failed, line: str, transductive, from_dev, checks) -> None:
    """One that chooses settings there is honest; where it does not say so, nobody knows that it did
    not count there."""
    assert set(failed(fitted(line, transductive, from_dev))) == checks


def test_a_system_that_asks_for_the_type_of_its_task_is_given_it(failed: Failed) -> None:
    """As in a run; it was told that an argument is missing."""
    constructor = (
        "def __init__(self, task_type, seed=0):\n        super().__init__(seed)\n        assert task_type == 'classify'"
    )
    assert failed(fitted("pass").replace("def fit", f"{constructor}\n\n    def fit")) == {}


@pytest.mark.parametrize(
    ("line", "checks"),
    [
        ("rows = [*train, *dev]", {"dev changes nothing", "learns from train alone"}),
        ("rows = dev", {"dev changes nothing", "learns from train alone"}),
        (
            "rows, self.told = [], {row['text']: row['label'] for row in dev}",
            {"dev changes nothing", "learns from train alone", "beats the floor on its mini task"},
        ),
        ("self.lot = secrets.randbelow(10**9)", {"same seed, same result"}),
        ("KEPT or KEPT.append(secrets.randbelow(10**9)); self.lot = KEPT[0]", {"same seed, same result"}),
        ("self.lot = np.random.default_rng(7).integers(1000)", {"another seed, other random numbers"}),
        ("np.random.seed(7); self.lot = np.random.rand()", {"another seed, other random numbers"}),
    ],
)
def test_a_system_that_cheats_fails_the_check_of_it(failed: Failed, line: str, checks: set[str]) -> None:
    """One that memorises dev scored 1.000 where it was checked on dev; one that keeps its first
    random numbers gave them to every later fit of the process."""
    assert set(failed(fitted(line))) == checks


def test_a_system_that_keeps_what_it_learnt_beside_its_state_fails(failed: Failed) -> None:
    """Loaded in another process it would know nothing; here the class still held it."""
    source = fitted("KEPT[:] = [self]", predict="self = KEPT[0]") + "\n    fitted_state = lambda self: {}\n"
    assert set(failed(source)) == {"kept and loaded, it answers the same"}


def test_a_system_that_looks_at_the_other_rows_fails(failed: Failed) -> None:
    """The same text would have another answer in a longer file."""
    assert set(failed(fitted("pass", predict="self.lot = len(rows)"))) == {
        "reordering or parting the rows changes nothing"
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "with ThreadPoolExecutor(64) as pool: list(pool.map(time.sleep, [0.2] * 64))",
            " threads more than before, and",
        ),
        ("torch.set_num_threads(torch.get_num_threads() + 1)", "threads of torch changed"),
        ("threadpool_limits(5, 'blas')", "openblas"),
        ("os.environ['OMP_NUM_THREADS'] = '64'", "OMP_NUM_THREADS changed from 1 to 64"),
        ("torch.set_default_dtype(torch.float64)", "default dtype changed"),
    ],
)
@pytest.mark.usefixtures("as_before")
def test_a_system_that_takes_more_threads_fails(failed: Failed, line: str, message: str) -> None:
    """A run gives each cell its share of the machine."""
    found = failed(fitted(line))
    assert set(found) == {"threads bounded, settings kept"}
    assert message in found["threads bounded, settings kept"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", "the handler of SIGTERM changed"),
        ("signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])", "blocked signals changed"),
        ("signal.setitimer(signal.ITIMER_VIRTUAL, 1000)", "running timers changed"),
        (
            "KEPT or KEPT.append(threading.Thread(target=time.sleep, args=(20,), name='late', daemon=True).start())",
            "thread late",
        ),
        ("os.posix_spawn('/bin/sleep', ['sleep', '30'], os.environ)", "process sleep"),
    ],
)
@pytest.mark.usefixtures("as_before")
def test_a_system_that_outlives_its_time_fails(failed: Failed, line: str, message: str) -> None:
    found = failed(fitted(line))
    assert set(found) == {"the time limit can be kept"}
    assert message in found["the time limit can be kept"]


def test_what_a_process_of_before_starts_is_not_a_systems() -> None:
    """A browser that was there starts processes of its own while a plugin is checked."""
    shell = ["sh", "-c", "read line; sleep 30 & echo begun; wait"]
    with subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as before:
        try:
            with Watch() as watch:
                assert before.stdin and before.stdout
                print(file=before.stdin, flush=True)
                assert before.stdout.readline() == "begun\n"
        finally:
            for process in (*psutil.Process(before.pid).children(), before):
                process.kill()
    watch.require_endable()


def test_an_attribute_with_the_name_of_a_method_is_told(failed: Failed) -> None:
    """Fitted and scored it was well, and `archbench predict` ended in a TypeError."""
    assert failed(fitted("self.answers = {}")) == {
        "a prediction per row": "an attribute hides its method answers, which others call; rename it"
    }


def test_a_transductive_system_that_asks_test_for_its_answers_is_told_so(failed: Failed) -> None:
    found = failed(fitted("rows = [*train, *({**row, 'label': row['label']} for row in unlabelled)]", True))
    message = (
        "fit reads the column 'label', which is an answer: the rows that its third argument is given have id, text"
    )
    assert found["a prediction per row"].startswith(message)


@pytest.mark.usefixtures("as_before")
def test_an_import_that_keeps_its_process_alive_is_caught(entry: Callable[[str], registry.Entry]) -> None:
    [result] = contract.check(entry(fitted("pass") + "\nsignal.signal(signal.SIGTERM, lambda *_: None)\n"))
    assert not result.passed and result.message.startswith("the handler of SIGTERM changed")


# --- trained architectures ---

TRAINED = """
import functools, os, secrets, signal

import numpy as np
import torch
import torch.nn.functional as F

from harness.kinds import TextEncoder
from harness.registry import register

@functools.cache
def drawn():
    return secrets.randbelow(10**9)

@register("plugin_that_may_cheat", name="Test", kind="text", paper="none", source="test", year=2026)
class Plugin(TextEncoder):
    seen = 0.0

    def __init__(self, width: int, classes: int):
        super().__init__()
        self.output, self.told, self.scale = torch.nn.Linear(width, classes), {{}}, 1.0
        {init}

    def forward(self, words):
        mean = (words.vectors * words.mask[..., None]).sum(1) / words.lengths[:, None] * 10
        scores = self.output(mean) * self.scale
        {forward}
        return scores

    def objective(self, scores, labels):
        {objective}
        return F.cross_entropy(scores, labels)
"""

ASKED = """
        self.asked = [tuple(row[row > 0].tolist()) for row in words.ids]
        if not self.training:
            for row, text in zip(scores, self.asked):
                if text in self.told:
                    row[self.told[text]] += 1000
"""
TOLD = "self.training or self.told.update(zip(self.asked, labels.tolist(), strict=True))"


def trained(init: str = "pass", forward: str = "pass", objective: str = "pass") -> str:
    """The source of an architecture with lines of its own."""
    return TRAINED.format(init=init, forward=forward.strip(), objective=objective)


def test_a_tensor_that_is_made_on_the_cpu_is_told(failed: Failed) -> None:
    """On a GPU each of its cells failed, and no test of a machine without one can see it."""
    found = failed(trained(forward="scores = scores + torch.arange(scores.shape[1])"))
    assert set(found) == {"its tensors stand where its inputs do"}
    assert "device=..." in found["its tensors stand where its inputs do"]


@pytest.mark.parametrize(
    "lines",
    [
        {},
        {"init": "self.output.weight.data.mul_(1 + torch.rand(()))"},
        {
            "init": "torch.nn.init.normal_(self.output.weight)",
            "forward": "scores = F.dropout(scores, .1, self.training)",
        },
    ],
)
def test_an_honest_architecture_passes(failed: Failed, lines: dict[str, str]) -> None:
    assert failed(trained(**lines)) == {}


@pytest.mark.parametrize(
    ("lines", "checks"),
    [
        ({"forward": ASKED, "objective": TOLD}, {"learns from train alone"}),
        ({"init": "self.scale = 1 + drawn() / 1e9"}, {"same seed, same result", "save and load"}),
        ({"init": "torch.manual_seed(0)"}, {"another seed, other random numbers"}),
        ({"init": "self.scale = 1 + np.random.default_rng(0).random()"}, {"another seed, other random numbers"}),
        (
            {"forward": "torch.manual_seed(0); scores = F.dropout(scores, .1, self.training)"},
            {"another seed, other random numbers"},
        ),
        (
            {"init": "self.steps = 0", "forward": "self.steps += self.training; torch.manual_seed(self.steps)"},
            {"another seed, other random numbers"},
        ),
        (
            {"forward": "Plugin.seen = mean.mean() if self.training else Plugin.seen; scores = scores + Plugin.seen"},
            {"save and load"},
        ),
        (  # two rows cannot tell
            {"forward": "scores = scores - scores.mean(0) if len(scores) > 2 else scores"},
            {"reordering or parting a batch changes nothing"},
        ),
    ],
)
def test_an_architecture_that_cheats_fails_the_check_of_it(
    failed: Failed, lines: dict[str, str], checks: set[str]
) -> None:
    """The loss on dev passes its labels to an architecture's own objective, which may note them."""
    assert set(failed(trained(**lines))) == checks


@pytest.mark.parametrize(
    ("lines", "check"),
    [
        ({"init": "torch.set_num_threads(torch.get_num_threads() + 1)"}, "threads bounded, settings kept"),
        (
            {"forward": "self.training and torch.set_num_threads(2 + (torch.get_num_threads() == 2))"},
            "threads bounded, settings kept",
        ),
        ({"init": "signal.signal(signal.SIGTERM, signal.SIG_IGN)"}, "the time limit can be kept"),
    ],
)
@pytest.mark.usefixtures("as_before")
def test_an_architecture_that_changes_its_process_fails(failed: Failed, lines: dict[str, str], check: str) -> None:
    assert set(failed(trained(**lines), learning=False)) == {check}


REGIME = """
import functools, secrets
from harness.kinds import Regime
from harness.registry import register

@functools.cache
def drawn():
    return secrets.randbelow(10**9)

@register("plugin_that_may_cheat", name="Test", kind="regime", paper="none", source="test", year=2026,
    hyperparameters={{"wraps": "avg_vectors"}})
class Plugin(Regime):
    def __init__(self, wraps="avg_vectors"):
        self.wraps = wraps

    def loss(self, model, batch):
        return model.loss(batch) * {factor}
"""


@pytest.mark.parametrize(("factor", "caught"), [("2", []), ("(1 + drawn() / 1e9)", ["same seed, same result"])])
def test_a_regime_that_cheats_fails_the_check_of_it(failed: Failed, factor: str, caught: list[str]) -> None:
    assert list(failed(REGIME.format(factor=factor), learning=False)) == caught


# --- padding of either text ---

PAIR = """
import torch
from harness.kinds import PairEncoder
from harness.registry import register

@register("plugin_that_may_cheat", name="Test", kind="pair", paper="none", source="test", year=2026)
class Plugin(PairEncoder):
    def __init__(self, width: int):
        super().__init__()
        self.layer, self.size = torch.nn.Linear(2 * width, 16), 16

    def mean(self, text, masked):
        return (text.vectors * text.mask[..., None]).sum(1) / (text.lengths[:, None] if masked else text.mask.shape[1])

    def forward(self, first, second):
        return self.layer(10 * torch.cat([self.mean(first, {0}), self.mean(second, {1})], 1)).tanh()
"""
READER = """
import torch
from harness.kinds import Reader, SpanScores
from harness.registry import register

@register("plugin_that_may_cheat", name="Test", kind="span", paper="none", source="test", year=2026)
class Plugin(Reader):
    def __init__(self, width: int):
        super().__init__()
        self.states, self.layer = torch.nn.GRU(width, 16, batch_first=True), torch.nn.Linear(16 + width, 2)

    def forward(self, passage, question):
        states = self.states(passage.vectors * passage.mask[..., None])[0]
        if not {0}:
            states = states + states.sum(1, keepdim=True)
        asked = question.vectors.sum(1) / (question.lengths[:, None] if {1} else question.mask.shape[1])
        states = torch.cat([states, asked[:, None].expand(-1, states.shape[1], -1)], -1)
        start, end = self.layer(states).masked_fill(~passage.mask[..., None], -torch.inf).unbind(-1)
        return SpanScores(start, end)
"""
ANSWERER = """
import torch
from harness.kinds import Answerer
from harness.registry import register

@register("plugin_that_may_cheat", name="Test", kind="answer", paper="none", source="test", year=2026)
class Plugin(Answerer):
    def __init__(self, width: int):
        super().__init__()
        self.words, self.layer, self.size = torch.nn.Embedding(width, 16), torch.nn.Linear(32, 16), 16

    def mean(self, facts, masked):
        weights = facts.mask if masked else torch.ones_like(facts.mask)
        return (self.words(facts.ids) * weights[..., None]).sum((1, 2)) / weights.sum((1, 2))[:, None]

    def forward(self, facts, question):
        return self.layer(torch.cat([self.mean(facts, {0}), self.mean(question, {1})], 1)).tanh()
"""


@pytest.mark.parametrize(
    ("source", "fields"),
    [(PAIR, ("first", "second")), (READER, ("passage", "question")), (ANSWERER, ("facts", "question"))],
)
@pytest.mark.parametrize("masked", [(True, True), (False, True), (True, False)])
def test_the_padding_of_either_text_is_seen(
    failed: Failed, source: str, fields: tuple[str, str], masked: tuple[bool, bool]
) -> None:
    """A pair may be padded in one text alone: both long in one row is not the only batch."""
    found = failed(source.format(*masked), learning=False)
    message = found.get("padding changes nothing", "")
    if all(masked):
        assert not message
    else:
        assert message.startswith(f"beside a longer {fields[masked.index(False)]} the output differs")


# --- answers ---

TREE = """
import torch
from harness.kinds import TreeEncoder
from harness.registry import register
from harness.views.tree import Trees

@register("plugin_that_may_cheat", name="Test", kind="tree", paper="none", source="test", year=2026)
class Plugin(TreeEncoder):
    view = Trees()

    def __init__(self, width: int):
        super().__init__()
        self.layer, self.size = torch.nn.Linear(width, 16), 16

    def nodes(self, trees):
        leaves = torch.zeros(len(trees.labels), trees.vectors.shape[1]).index_copy(0, trees.leaf_nodes, trees.vectors)
        texts = torch.zeros(len(trees.roots), leaves.shape[1]).index_add(0, trees.node_text, leaves)
        states = self.layer(10 * (leaves + texts[trees.node_text] / trees.lengths[trees.node_text, None]))
        return (states + {read}).tanh()
"""


@pytest.mark.parametrize(("read", "caught"), [("0", False), ("(trees.labels[:, None] > 2)", True)])
def test_an_architecture_that_reads_the_labels_of_its_trees_fails(failed: Failed, read: str, caught: bool) -> None:
    """Training rows have them, rows that are asked about do not."""
    assert ("reads no answer" in failed(TREE.format(read=read), learning=False)) == caught


@pytest.mark.parametrize(
    "task", {task.type: task for task in registry.entries("tasks").values()}.values(), ids=lambda t: t.type
)
def test_flipped_answers_are_all_wrong_and_nothing_else_changes(task: registry.TaskEntry) -> None:
    """Else an honest system would seem to have learnt from them."""
    asked = problem(task.type)
    rows = registry.load(task)(task).load("dev", "mini").to_list()
    flipped = asked.flipped(rows)
    if task.type in ("extract", "language_model", "text", "audio", "transcribe", "translate"):
        assert flipped is None
        return
    assert asked.input_rows(flipped) == asked.input_rows(rows)
    for name in {"label", "answer", "labels", "score"} & rows[0].keys():
        assert all(row[name] != other[name] for row, other in zip(rows, flipped, strict=True))
        if name in ("label", "answer"):
            assert {row[name] for row in rows} == {row[name] for row in flipped}
    if task.type == "tag":
        for row, other in zip(rows, flipped, strict=True):
            assert all(tag != wrong for tag, wrong in zip(row["tags"], other["tags"], strict=True))

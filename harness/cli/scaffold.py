"""Writes a plugin file that works as it stands, and its test, for somebody to change into their
model (``archbench new``)."""

from __future__ import annotations

import datetime
import keyword
import re
from pathlib import Path

from harness import registry
from harness.errors import UsageError

TASKS = {"text": "sst2", "seq": "sst2", "pair": "snli", "tag": "conll2003_ner"}
"""A task to try a new architecture of each kind on."""

KINDS = tuple(TASKS)
_ROOT = Path(__file__).resolve().parents[2]

HEADER = '''"""{title}: one sentence on what it is."""

from __future__ import annotations

{imports}

from harness.kinds import {bases}
from harness.registry import Recipe, register
{views}

@register(
    "{name}",
    name="{title}",
    kind="{kind}",
    paper="Author & Author {year}",
    source="section or equation that this follows",
    year={year},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10),
    tiny={{"hidden": 8}},
)
'''

BODIES = {
    "text": (
        '''class {cls}(TextEncoder):
    """Mean of the word vectors, then one hidden layer. Say here what the paper does, and where."""

    def __init__(self, width: int, hidden: int = 100, dropout: float = 0.2):
        super().__init__()
        self.hidden = nn.Sequential(nn.Dropout(dropout), nn.Linear(width, hidden), nn.Tanh())
        self.size = hidden

    def forward(self, words: WordBatch) -> Tensor:
        return self.hidden(pool(words.vectors, words.mask, "mean"))
'''
    ),
    "seq": (
        '''class {cls}(SequenceEncoder):
    """A state per position from its vector and its left neighbour's. Say here what the paper does,
    and where."""

    pooling = "max"

    def __init__(self, width: int, hidden: int = 100, dropout: float = 0.2):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.here = nn.Linear(width, hidden)
        self.left = nn.Linear(width, hidden, bias=False)
        self.size = hidden

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        vectors = self.dropout(vectors)
        neighbours = nn.functional.pad(vectors, (0, 0, 1, 0))[:, :-1]
        return torch.tanh(self.here(vectors) + self.left(neighbours))
'''
    ),
    "pair": (
        '''class {cls}(PairEncoder):
    """Both texts as mean vectors u and v; a hidden layer reads [u, v, |u - v|, u * v].

    Say here what the paper does, and where.
    """

    def __init__(self, width: int, hidden: int = 100, dropout: float = 0.2):
        super().__init__()
        self.hidden = nn.Sequential(nn.Dropout(dropout), nn.Linear(4 * width, hidden), nn.Tanh())
        self.size = hidden

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        u, v = (pool(words.vectors, words.mask, "mean") for words in (first, second))
        return self.hidden(torch.cat([u, v, (u - v).abs(), u * v], dim=1))
'''
    ),
    "tag": (
        '''class {cls}(Tagger):
    """Scores of a word's labels from the word and its two neighbours. Say here what the paper does,
    and where."""

    decoder = "softmax"

    def __init__(self, width: int, labels: int, hidden: int = 100, dropout: float = 0.2):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.window = nn.Conv1d(width, hidden, kernel_size=3, padding=1)
        self.output = nn.Linear(hidden, labels)

    def forward(self, words: WordBatch) -> Tensor:
        vectors = self.dropout(words.vectors) * words.mask[..., None]
        return self.output(torch.tanh(self.window(vectors.transpose(1, 2)).transpose(1, 2)))
'''
    ),
}

BASES = {"text": "TextEncoder, pool", "seq": "SequenceEncoder", "pair": "PairEncoder, pool", "tag": "Tagger"}

TEST_HEADER = '''"""The mechanism of {title}: each test fails when what defines the model is taken out."""

from __future__ import annotations

{imports}'''

BUILD = '''def build(**hyperparameters):
    """The model on vectors of two numbers, without dropout."""
    torch.manual_seed(0)
    return registry.load(registry.entry("architectures", "{name}"))(width=2, hidden=3, **hyperparameters).eval()'''

WORDS = '''def words(*texts):
    """A batch of texts, each a list of word vectors; what pads the short ones must not count."""
    longest = max(map(len, texts))
    vectors = torch.tensor([[*text, *[[99.0, 99.0]] * (longest - len(text))] for text in texts])
    lengths = torch.tensor([len(text) for text in texts])
    ids, mask = torch.zeros(vectors.shape[:2], dtype=torch.long), torch.arange(longest) < lengths[:, None]
    return WordBatch(ids, mask, lengths, vectors)'''

TESTS = {
    "text": (
        """def test_a_text_is_the_mean_of_its_real_words():
    model = build()
    model.hidden = torch.nn.Identity()
    means = model(words([[1.0, 0.0], [3.0, 4.0]], [[5.0, 6.0]]))
    assert means.tolist() == [[2.0, 2.0], [5.0, 6.0]]"""
    ),
    "seq": (
        """def test_a_state_sees_its_position_and_the_left_neighbour_and_no_more():
    model, mask = build(), torch.ones(1, 4, dtype=torch.bool)
    vectors = torch.randn(1, 4, 2)
    changed = vectors.clone()
    changed[0, 1] += 1.0
    moved = (model(vectors, mask) - model(changed, mask)).abs().sum(-1)[0] > 1e-6
    assert moved.tolist() == [False, True, True, False]"""
    ),
    "pair": (
        """def test_the_hidden_layer_reads_both_texts_their_distance_and_their_product():
    model = build()
    model.hidden = torch.nn.Identity()
    joined = model(words([[1.0, 2.0]]), words([[3.0, 0.0], [5.0, 0.0]]))
    assert joined.tolist() == [[1.0, 2.0, 4.0, 0.0, 3.0, 2.0, 4.0, 0.0]]"""
    ),
    "tag": (
        """def test_a_word_is_scored_from_itself_and_its_two_neighbours():
    model = build(labels=4)
    text = torch.randn(5, 2).tolist()
    changed = [*text[:3], [9.0, 9.0], *text[4:]]
    moved = (model(words(text)) - model(words(changed))).abs().sum(-1)[0] > 1e-6
    assert moved.tolist() == [False, False, True, True, True]"""
    ),
}

CONTRACT_TEST = """def test_it_keeps_the_contract():
    failed = [result for result in check(registry.entry("architectures", "{name}")) if not result.passed]
    assert not failed, failed"""


def write(name: str, kind: str, family: str, out: Path | None) -> tuple[Path, Path]:
    """Write the plugin and its test; returns both paths.

    They go to ``architectures/<family>/`` and ``tests/architectures/<family>/`` of the checkout, or
    both to ``out``. Raises :class:`UsageError` for a name that is taken or cannot be one, and never
    overwrites a file.
    """
    for option, value in (("NAME", name), ("--family", family)):
        if not re.fullmatch(r"[a-z][a-z0-9_]*", value) or keyword.iskeyword(value):
            raise UsageError(f"{option} {value}: use lower-case letters, digits and underscores, a letter first")
    if taken := registry.entries("architectures").get(name):
        raise UsageError(f"{name} is taken: {taken.file}")
    if out is None and not (_ROOT / "pyproject.toml").is_file():
        raise UsageError(
            "archbench is not run from its repository: give --out DIR, a folder for the plugin and its test"
        )
    plugin = (out or _ROOT / "architectures" / family) / f"{name}.py"
    test = (out or _ROOT / "tests" / "architectures" / family) / f"test_{name}.py"
    for file, text in ((plugin, _plugin(name, kind)), (test, _test(name, kind, plugin if out else None))):
        if file.exists():
            raise UsageError(f"{file} exists already")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{file}: {error.strerror}; give another folder with --out") from error
    return plugin, test


def _plugin(name: str, kind: str) -> str:
    body = BODIES[kind]
    header = HEADER.format(
        name=name,
        title=name.replace("_", " ").capitalize(),
        kind=kind,
        year=datetime.datetime.now(datetime.UTC).year,
        imports=("import torch\n" if "torch." in body else "") + "from torch import Tensor, nn",
        bases=BASES[kind],
        views="from harness.views.words import WordBatch\n" if "WordBatch" in body else "",
    )
    return header + body.format(cls="".join(part.capitalize() for part in name.split("_")))


def _test(name: str, kind: str, plugin: Path | None) -> str:
    """The test file; a plugin outside the repository is registered by its path, and checked there
    too."""
    reads_words = kind != "seq"
    imports = ["import torch\n", "from harness import registry"]
    if plugin:
        imports = ["from pathlib import Path\n", *imports, "from harness.contract import check"]
    if reads_words:
        imports.append("from harness.views.words import WordBatch")
    if plugin:
        imports.append(f'\nregistry.add_plugin(Path(__file__).with_name("{plugin.name}"))')
    parts = [
        TEST_HEADER.format(title=name.replace("_", " "), imports="\n".join(imports)),
        BUILD.replace("{name}", name),
    ]
    parts += [WORDS] * reads_words + [TESTS[kind]] + [CONTRACT_TEST.format(name=name)] * bool(plugin)
    return "\n\n\n".join(parts) + "\n"

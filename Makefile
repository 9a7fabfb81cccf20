PYTHON ?= python3
VENV ?= .venv
RESULTS ?= runs
FUZZ ?= 200
SPEED ?= results/speed.json
BASE ?= origin/main
BIN = $(VENV)/bin
INSTALLED = $(VENV)/installed
# Modules stay compiled, also where the machine forbids it: else each process that a test starts compiles all anew.
export PYTHONDONTWRITEBYTECODE =

# One architecture of most kinds; every task has some that fit.
MINI = avg_vectors,kim_cnn_rand,tree_lstm,bilstm,decomposable,bilstm_crf,span_search,memn2n,bilstm_ctc,attn_seq2seq,naive_bayes,ngram_lm,unigram,hubert
# The papers' sizes of these three take minutes on a CPU, and this grid only shows that everything runs.
SMALL = -o attn_seq2seq.encoder_hidden=64 -o attn_seq2seq.hidden=128 -o attn_seq2seq.symbol_size=64 -o bilstm_ctc.hidden=64 -o hubert.layers=1

.DEFAULT_GOAL = run
.PHONY: run first-command lint imports types test test-minutes docs wheel breaks breaks-changed check-all test-faults bench bench-models bench-try

run: $(INSTALLED)
	@$(BIN)/archbench run -a '$(MINI)' -t '*' --tier mini --protocol smoke $(SMALL) --results $(RESULTS); status=$$?; \
	$(BIN)/archbench leaderboard --results $(RESULTS) || status=$$?; \
	echo; \
	echo "records:      $(RESULTS)/records/<task>/<architecture>/"; \
	echo "leaderboard:  $(RESULTS)/leaderboard/index.html"; \
	echo "MLflow pages: $(BIN)/archbench ui --results $(RESULTS)"; \
	exit $$status

# The stages of .ci/run, in its order.

first-command: $(INSTALLED)
	$(BIN)/python -m pytest -q --benchmark-disable tests/first_command

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell

imports: $(INSTALLED)
	PYTHONPATH=. $(BIN)/lint-imports

types: $(INSTALLED)
	$(BIN)/mypy

test: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal --benchmark-disable --ignore=tests/bench --ignore=tests/faults --ignore=tests/first_command --ignore=tests/docs -m 'not minutes'

# What takes minutes: sizes, digests and words of the corpora that are made of others', and what they may not share with
# any test (they want ARCHBENCH_DATA); the readers of IMDB, 20 Newsgroups and Reuters; trainings of three seeds; those that
# show what the mini corpora tell apart; all of the contract for architectures that go a way through the harness which a
# simpler one goes too, and for input sources but the simplest. Run where what they guard changes.
test-minutes: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 -m minutes tests/tasks tests/training tests/test_contract.py

# Those that the changes since the last landed commit concern; `make breaks` tries them all, and goes on where it stopped.
breaks-changed: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.breaks --since $(BASE) --minutes 6

breaks: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.breaks

# Every architecture at its default size on its mini task, two minutes each: results/default_size.csv.
check-all: $(INSTALLED)
	$(BIN)/python -m tools.check_all

# The tutorial's notebook is run, and no picture may be older than its page.
docs: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --benchmark-disable tests/docs
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=. $(BIN)/python -m mkdocs build --quiet

# Wants chromium; after new records, or a change of the pages.
screenshots: $(INSTALLED)
	$(BIN)/python -m tools.screenshots

wheel: $(INSTALLED)
	.ci/wheel $(BIN)/python

test-faults: $(INSTALLED)
	$(BIN)/python -m pip --require-virtualenv install --quiet -c constraints.txt -e '.[dev,ray]'
	ARCHBENCH_RELIABILITY=results/reliability.md ARCHBENCH_FUZZ=$(FUZZ) ARCHBENCH_FUZZ_REPORT=/tmp/archbench-fuzz.json \
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/fuzz tests/running/test_ray_engine.py tests/faults

# What `archbench try` hands over on sets at hand: results/bench_try.csv and .md; an hour and a half on a quiet machine.
# It wants ARCHBENCH_DATA, and goes on where it stopped.
bench-try: $(INSTALLED)
	$(BIN)/python -m tools.bench_try

# Both want a machine that does nothing else; ARCHBENCH_DATA names the real corpora, FASTTEXT the public program.
bench: $(INSTALLED)
	ARCHBENCH_SPEED=$(SPEED) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/bench --benchmark-only
	$(BIN)/python -m tools.speed.report $(SPEED)

bench-models: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.speed.models $(SPEED)
	$(BIN)/python -m tools.speed.report $(SPEED)

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python >= 3.11 is needed; name one: make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing (about a minute, 2 GB with torch for the CPU)"
	$(BIN)/python -m pip --require-virtualenv install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

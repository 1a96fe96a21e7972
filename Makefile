# The daily commands. `make train` and `make test` set up everything they need by themselves.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.setup-done
NATIVE := $(shell find native CMakeLists.txt -name '*.h' -o -name '*.cpp' -o -name 'CMakeLists.txt' 2>/dev/null)

.PHONY: help setup train test lint format bench conformance devices learning sanitize native cuda docs clean

help:  ## Show these lines
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: $(STAMP)  ## Create .venv with everything

$(STAMP): pyproject.toml constraints.txt $(NATIVE)
	@test -x $(BIN)/python || { echo "Creating $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python -c 'import torch' 2>/dev/null || echo "Installing into $(VENV): PyTorch alone is 200 MB (CPU build) to 3 GB (with CUDA), the rest about 300 MB; this happens once."
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[atari,video,lab,compare,cluster,dev]"
	@touch $@

FIRST = vtrace pong --target-score 15 --seconds 1200 --stop-if-too-slow --film

train: $(STAMP)  ## Train an agent that beats Pong, play 30 games, film one: about five minutes
	@echo "Trains A2C with V-trace on Pong until the mean of its last 100 games is 15 of 21."
	@echo "Expect -20 for the first 300,000 agent steps, a steep rise, and 15 after 0.5 to 0.8 million: three to four"
	@echo "minutes on two quiet cores. Some seeds need twice that; it gives up after 20 minutes, or one if too slow."
	$(BIN)/scanline train $(FIRST) --out runs/pong-first --if-exists number
	@echo
	@echo "Three things to try next:"
	@echo "  another game       $(BIN)/scanline train vtrace breakout --agent-steps 10_000_000"
	@echo "  another algorithm  $(BIN)/scanline train ppo pong --target-score 18    ($(BIN)/scanline list recipes)"
	@echo "  your own           $(BIN)/scanline train ./examples/own_recipe.py pong"

test: $(STAMP)  ## Run all tests
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal

native: $(STAMP)  ## Build and run the native test programs
	SCANLINE_NATIVE_TESTS=1 $(BIN)/python -m pytest tests/native/test_programs.py

lint: $(STAMP)  ## Check format, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@find native -name '*.h' -o -name '*.cpp' -o -name '*.cu' | xargs $(BIN)/clang-format --dry-run --Werror

format: $(STAMP)  ## Bring all sources into format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	@find native -name '*.h' -o -name '*.cpp' -o -name '*.cu' | xargs $(BIN)/clang-format -i

bench: $(STAMP)  ## Measure emulation and training against the peers; close other programs first
	$(BIN)/scanline bench training --recipes paac,a2c --peers sb3 --game pong --json benchmarks/results/training.json

conformance: $(STAMP)  ## Compare all games with ALE frame by frame: 6 million frames, half an hour; goes on where it was stopped
	$(BIN)/python tests/conformance/run.py --record build/conformance/outcomes.jsonl --summary benchmarks/results/conformance.txt

devices: $(STAMP)  ## Compare engines on devices with engine native, all ROMs; goes on where it was stopped
	$(BIN)/python tests/conformance/device_engines.py --record build/device-conformance --summary benchmarks/results/device-conformance.txt

learning: $(STAMP)  ## Does it still learn? Three recipes on Pong against kept bounds: half an hour; goes on where it was stopped
	@test ! -e build/learning/report.md || rm -r build/learning
	$(BIN)/scanline reproduce learning-bounds --scale desk --out build/learning --must-hold

ROMS = $(shell $(BIN)/python -c 'from scanline import games; print(games.rom_path("pong").parent)')
SANITIZED = -DSCANLINE_PYTHON=OFF -DSCANLINE_TESTS=ON -DCMAKE_BUILD_TYPE=Release -DSCANLINE_SANITIZE

sanitize: $(STAMP)  ## Run the native tests, a million hostile frames per cartridge type and a million forged snapshots with sanitizers: three hours
	$(BIN)/cmake -S . -B build/address $(SANITIZED)=address,undefined
	$(BIN)/cmake --build build/address --parallel
	$(BIN)/ctest --test-dir build/address --output-on-failure
	$(BIN)/cmake -S . -B build/thread $(SANITIZED)=thread
	$(BIN)/cmake --build build/thread --parallel --target test_batch test_work_sharing
	build/thread/native/tests/test_batch
	build/thread/native/tests/test_work_sharing
	build/address/native/tests/test_host_grid $(ROMS)/*.bin
	build/address/native/tests/hostile_roms 1000000 all $(ROMS)/*.bin
	for shard in 1 2 3 4 5 6 7 8 9 10; do build/address/native/tests/fuzz_snapshots 100000 $$shard $(ROMS)/*.bin || exit 1; done

cuda: $(STAMP)  ## Compile every kernel for every architecture and cartridge type: registers, spills, stack; needs no GPU
	$(BIN)/python benchmarks/cuda_kernels.py --json benchmarks/results/cuda-kernels.json

docs: $(STAMP)  ## Build the documentation as a site in build/site
	$(BIN)/mkdocs build --strict --quiet
	@echo "Open build/site/index.html"

clean:  ## Remove what was built, but no run
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis

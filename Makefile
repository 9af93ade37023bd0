# Every target calls the commands that a person would type; all of them use .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
AGENT  := .venv-agent
# Others' releases are exactly the locked ones; the project itself is built with what is among them. Bytecode is
# made where it is first needed: most modules of the largest packages never are.
LOCKED := --quiet --disable-pip-version-check --no-compile --require-hashes
OWN    := --quiet --disable-pip-version-check --no-deps --no-build-isolation
# As many processes as cores; tests/spread.py says which tests each runs.
SPREAD := --numprocesses $(shell nproc) --dist loadscope --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help install demo demo-check test test-agent test-database test-cluster lint fmt bench lock audit docs manifests proto messages clean

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

install: $(VENV)/.installed ## Make .venv with everything that development needs

$(VENV)/.installed: pyproject.toml .ci/locks/development.txt
	.ci/system-packages run
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install $(LOCKED) --requirement .ci/locks/development.txt
	$(BIN)/pip install $(OWN) --editable .
	$(BIN)/python .ci/helm $(VENV)
	touch $@

$(AGENT)/.installed: pyproject.toml .ci/locks/agent.txt
	.ci/system-packages run
	$(PYTHON) -m venv $(AGENT)
	$(AGENT)/bin/pip install $(LOCKED) --requirement .ci/locks/agent.txt
	$(AGENT)/bin/pip install $(OWN) --editable .
	touch $@

demo: install ## A simulated cluster with its dashboard on http://127.0.0.1:8000/, until Ctrl-C
	$(BIN)/python manage.py demo

demo-check: install ## The fixed story of the demo, checked step by step, without the page
	$(BIN)/python manage.py demo --check

test: install ## All tests; says what it skips and why
	.ci/system-packages test
	$(BIN)/python -m pytest -rs $(SPREAD)

test-agent: $(AGENT)/.installed ## The core and the agent in an environment without Django
	$(AGENT)/bin/python -m pytest -c tests/agent.ini -rs $(SPREAD) tests/core tests/nvml tests/driver_contract tests/node_agent

test-database: install ## What writes and reads the mirror, on the database of HAMI_TEST_DATABASE_URL
	$(BIN)/python -m pytest -rs $(SPREAD) -m "not slow" tests/mirror tests/sync tests/api tests/access

test-cluster: install ## Only the end-to-end suite, on the Kubernetes of HAMI_TEST_KUBE or HAMI_TEST_KUBECONFIG
	$(BIN)/python -m pytest -rs tests/cluster

lint: install ## Style, format, types and architecture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/python manage.py check
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py spectacular --validate --fail-on-warn --file /dev/null

fmt: install ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install ## Placement quality, filter speed, Allocate, bursts, the mirror and the dashboard against their baselines
	$(BIN)/python -m tests.benchmarks.placement
	$(BIN)/python -m tests.benchmarks.filter
	$(BIN)/python -m tests.benchmarks.allocate
	$(BIN)/python -m tests.benchmarks.burst
	$(BIN)/python -m tests.benchmarks.mirror
	$(BIN)/python -m tests.benchmarks.dashboard

manifests: install ## Make the manifests in deploy/ from the chart
	$(BIN)/python -m tests.deploy.manifests

lock: ## Resolve the dependencies in pyproject.toml anew; `.ci/lock --upgrade` takes the newest
	.ci/lock

audit: install ## Hold the locks against published advisories
	$(BIN)/python .ci/audit

docs: install ## Make the tables of settings and licences in the documents from the code
	$(BIN)/python -m tests.architecture.settings_reference
	$(BIN)/python -m tests.architecture.licences

proto: install ## Regenerate the code of the kubelet device-plugin API
	$(BIN)/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. --grpc_python_out=. node_agent/deviceplugin/v1beta1.proto

messages: install ## Collect texts for translation and compile them; needs gettext
	$(BIN)/python manage.py makemessages -l zh_Hans --no-wrap --no-location --no-obsolete -i .venv -i .venv-agent -i tests
	msgfmt -o hami_web/locale/zh_Hans/LC_MESSAGES/django.mo hami_web/locale/zh_Hans/LC_MESSAGES/django.po

clean: ## Remove environments and caches
	rm -rf $(VENV) $(AGENT) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The two commands to know: `make demo` and `make test`. Both set up what they need first.
SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

CARGO ?= cargo
SETUP := tools/setup
# Programs of the lab, ours and Kubernetes', for the recipes below.
export PATH := $(CURDIR)/target/debug:$(shell $(SETUP) path)/bin:$(PATH)

.PHONY: help setup build demo demo-down test lint unit bench conformance crds env deny

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: ## packages, real programs and images into the cache; silent when all is there
	@$(SETUP)

build: setup
	@$(CARGO) build --quiet --workspace

demo: build ## a real cluster on this machine, with a tour
	@tools/demo

demo-down: build ## end the demo
	@kubectl-underlay lab down

test: setup lint unit ## everything CI runs

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --quiet --workspace --all-targets -- -D warnings

unit: build
	$(CARGO) test --workspace --no-fail-fast

bench: setup ## make bench NAME=lab: ends with one line of JSON
	@$(CARGO) build --quiet --release --workspace
	@target/release/underlay-bench $(NAME)

conformance: build ## make conformance FOCUS='regular expression': Kubernetes' own end-to-end tests
	@$(CARGO) run --quiet -p xtask -- conformance --focus '$(FOCUS)'

crds: ## write deploy/crds from the types in crates/api
	@$(CARGO) run --quiet -p xtask -- crds

env: build ## eval "$(make -s env)": the lab's programs in your shell's PATH
	@echo 'export PATH=$(CURDIR)/target/debug:'"$$($(SETUP) path)"'/bin:$$PATH'

deny: ## licences, sources and advisories of the dependencies (needs cargo-deny)
	$(CARGO) deny check

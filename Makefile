# make demo    from nothing to four serving nodes, twice, with an answer from every service
# make test    the tests
# make slow    exhaustive searches and fifty broken runs, which take hours
# make clean   removes all that the other targets made
# docs/sandbox.md describes the rest.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
.DEFAULT_GOAL := help

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/heterogpu-sandbox
MIX ?= tests/sandbox/mixes/default.yml
INVENTORY ?= inventories/sandbox
PYTHON := $(CURDIR)/.venv/bin/python
# All sandbox nodes at once; a datacenter keeps the default, one node at a time.
PLAYBOOK := ansible-playbook --inventory $(INVENTORY) --extra-vars site_serial=100%

export PATH := $(CURDIR)/.venv/bin:$(PATH)
export CONTAINERS_CONF := $(CACHE)/engine/containers.conf
export LC_ALL := C.UTF-8

step = printf '\n==> %s  %s\n' "$$(date +%H:%M:%S)" '$(1)'

.PHONY: help setup repository wheels sandbox sandbox-destroy site demo \
	lint unit simulation slow sanity molecule system test clean

help:
	@sed -n 's/^# //p' Makefile

setup:
	@$(call step,Set-up)
	@tests/sandbox/setup/setup

repository: setup
	@$(call step,Package repository)
	@$(MAKE) --no-print-directory -C tests/sandbox/repository OUT=$(CACHE)/repository SYSTEM=debian-12 PYTHON=$(PYTHON)

wheels: setup
	@tests/sandbox/setup/wheels

sandbox: repository wheels
	@$(call step,Sandbox of $(MIX))
	@ansible-playbook tests/sandbox/playbooks/create.yml --extra-vars sandbox_mix=$(MIX)

sandbox-destroy: setup
	@$(call step,Removing the sandbox of $(MIX))
	@ansible-playbook tests/sandbox/playbooks/destroy.yml --extra-vars sandbox_mix=$(MIX)

# The second run must find nothing to do.
site: sandbox
	@$(call step,Site: first run)
	@$(PLAYBOOK) playbooks/site.yml
	@$(call step,Site: second run)
	@ANSIBLE_CALLBACK_PLUGINS=tests/sandbox/callback ANSIBLE_CALLBACKS_ENABLED=sandbox_recap SANDBOX_RECAP=$(CACHE)/recap.json \
		$(PLAYBOOK) playbooks/site.yml
	@python tests/sandbox/setup/unchanged.py $(CACHE)/recap.json

demo: site
	@$(call step,A request to every service)
	@$(PLAYBOOK) playbooks/demo.yml

lint: setup
	@$(call step,Lint)
	@yamllint --strict .
	@ruff check .
	@shellcheck --severity=warning $$(git grep --untracked -lE '^#!/bin/(ba)?sh' -- . ':!*.md')
	@tests/sandbox/setup/types
	@ansible-lint

unit: setup
	@$(call step,Unit tests)
	@pytest tests/unit

simulation: setup
	@$(call step,Modules against the simulated driver)
	@pytest tests/simulation

# Exhaustive searches that the ordinary tests sample, and what takes hours: fifty broken runs, the collection taken off a node.
slow: sandbox
	@$(call step,Searches and broken runs)
	@pytest tests/unit tests/simulation tests/system -m slow

sanity: setup
	@$(call step,ansible-test sanity)
	@tests/sandbox/setup/sanity

molecule: repository wheels
	@$(call step,Molecule)
	@molecule test --all --report

system: sandbox
	@$(call step,System tests)
	@pytest tests/system

test: lint unit simulation sanity sandbox molecule system

clean:
	@$(call step,Removing containers, images, volumes, networks, caches and the environment)
	@tests/sandbox/setup/clean

# Builds the programs of NVIDIA's container toolkit from their Go module. Needs go and a C compiler. Usage: make -f toolkit.mk OUT=... VERSION=...
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
GO ?= go
MODULE := github.com/NVIDIA/nvidia-container-toolkit
# As upstream links them: NVML's symbols are looked up when the library has been opened.
LINKER := -Wl,--export-dynamic -Wl,--unresolved-symbols=ignore-in-object-files -Wl,-z,lazy
COMMANDS := nvidia-ctk nvidia-cdi-hook nvidia-container-runtime nvidia-container-runtime-hook
UNITS := nvidia-cdi-refresh.service nvidia-cdi-refresh.path nvidia-cdi-refresh.env 10-container-engines.conf

.PHONY: all
all:
	@mkdir -p $(OUT)/module
	@cd $(OUT)/module && printf 'module toolkit\n\ngo 1.26\n' > go.mod && $(GO) get $(addsuffix @v$(VERSION),$(addprefix $(MODULE)/cmd/,$(COMMANDS)))
	cd $(OUT)/module && CGO_ENABLED=1 CGO_CFLAGS="-O2 -Wno-deprecated-declarations" nice $(GO) build -trimpath -o $(OUT)/ \
	  -ldflags '-s -w -X $(MODULE)/internal/info.version=$(VERSION) '\''-extldflags=$(LINKER)'\''' \
	  $(addprefix $(MODULE)/cmd/,$(COMMANDS))
	cd $(OUT)/module && folder=$$($(GO) list -m -f '{{.Dir}}' $(MODULE)) && \
	  install -m 0644 $(addprefix $$folder/deployments/systemd/,$(UNITS)) $(OUT)/

# The short names for what a person does here. Each target does all its own set-up.
#   make run        make this machine's GPUs ready for containers (a simulated machine where there is no GPU)
#   make test       everything that needs no GPU, under ASan and UBSan
#   make test-cluster   a real Kubernetes on a simulated machine (needs root and Go; the first build takes minutes)
#   make soak       the same with its long forms: hundreds of pods
#   make lint       format, clang-tidy, layers, spelling, shell
#   make bench      the benchmarks, as ratios in one run
#   make gpu-test   the same lanes and more on a machine with a real GPU (see CONTRIBUTING.md)
#   make package    .deb, .rpm and a relocatable tar in build/packages
#   make image      the agent's container image in build/image, made without an engine
#   make install    programs, simulated driver, completion, man pages below $(DESTDIR)$(PREFIX)
PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: run test test-cluster cluster-programs soak build dev fuzz lint bench gpu-pack gpu-test package image install clean setup

setup:
	@tools/setup

build: setup
	@tools/build release programs

dev: setup
	@tools/build dev

fuzz: setup
	@tools/build fuzz fuzzers

run: build
	@tools/run

test: dev fuzz build
	@tools/test

test-cluster: build
	@tools/test-cluster $(CLUSTER)

cluster-programs:
	@tools/test-cluster --programs

soak: build
	@tools/test-cluster --long $(CLUSTER)

lint: setup
	@tools/lint $(LINT)

bench: build
	@bench/run
	@bench/containers
	@bench/agent
	@bench/schedule

gpu-pack: setup
	@tools/build release
	@tools/gpu-pack

gpu-test:
	@tests/gpu/run

package: build
	@tools/package

image: build
	@tools/image

install: build
	@DESTDIR=$(DESTDIR) cmake --install build/release --prefix $(PREFIX) >build/install.log 2>&1 || { cat build/install.log; exit 1; }
	@echo "installed below $(DESTDIR)$(PREFIX)"

clean:
	rm -rf build

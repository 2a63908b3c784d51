# The short names for what a person does here. Each target installs the packages that it needs, and no others (tools/setup).
#   make run        make this machine's GPUs ready for containers (a simulated machine where there is no GPU);
#                   RUN=--all: a skipped step is a failure
#   make test       everything that needs no GPU, under ASan and UBSan
#   make test-cluster   a real Kubernetes on a simulated machine (needs root and Go; the first build takes minutes)
#   make test-vm    virtual machine hosts in QEMU: passthrough and vGPU on a real kernel (Debian 12; the first time takes minutes);
#                   VM=A: only this host; the last lines name what a run left out. All of it takes 15 minutes, .ci/run boots 4 minutes of it
#   make soak       the same two with their long forms: hundreds of pods, a GPU bound and released 50 times; then a minute of each
#                   fuzz target
#   make lint       format, clang-tidy, layers, spelling, shell
#   make bench      the benchmarks, as ratios in one run
#   make gpu-test   the same lanes and more on a machine with a real GPU (see CONTRIBUTING.md)
#   make package    .deb, .rpm and a relocatable tar in build/packages
#   make repository   signed repositories of them for apt, dnf, zypper and helm in build/repository (docs/install.md)
#   make image      the agent's container image in build/image, made without an engine
#   make install    programs, simulated driver, completion, man pages below $(DESTDIR)$(PREFIX)
PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: run test test-cluster test-vm vm-programs cluster-programs soak build bench-programs dev fuzz lint bench gpu-pack gpu-test package repository image install clean

build:
	@tools/setup build
	@tools/build release programs

bench-programs:
	@tools/setup build
	@tools/build release bench-programs

dev:
	@tools/setup dev
	@tools/build dev

fuzz:
	@tools/setup dev
	@tools/build fuzz fuzzers

run:
	@tools/setup run
	@tools/build release programs
	@tools/run $(RUN)

test:
	@tools/setup test
	@tools/build dev
	@tools/build fuzz fuzzers
	@tools/build release bench-programs
	@tools/test

test-cluster: build
	@tools/test-cluster $(CLUSTER)

cluster-programs:
	@tools/test-cluster --programs

soak: build
	@tools/test-cluster --long $(CLUSTER)
	@tools/setup vm
	@GANTRY_VM_ROUNDS=50 GANTRY_VM_KILLS="$$(seq -s ' ' 1 3 60)" GANTRY_VM_LIMIT=1200 tests/vm/run build/release/bin
	@tools/setup dev
	@tools/build fuzz fuzzers
	@for target in build/fuzz/bin/*_fuzz; do tools/fuzz $$target 60 || exit 1; done

vm-programs:
	@tools/setup vm
	@tools/vm-prepare

test-vm: build
	@tools/setup vm
	@tests/vm/run build/release/bin $(VM)

lint:
	@tools/setup lint
	@tools/lint $(LINT)

bench:
	@tools/setup bench
	@tools/build release bench-programs
	@bench/run
	@bench/containers
	@bench/agent
	@bench/schedule

gpu-pack:
	@tools/setup gpu-pack
	@tools/build release
	@tools/gpu-pack

gpu-test:
	@tests/gpu/run

package: build
	@tools/setup package
	@tools/package

repository: package
	@tools/setup repository
	@tools/repository $(REPOSITORY)

image: build
	@tools/setup image
	@tools/image

install: build
	@DESTDIR=$(DESTDIR) cmake --install build/release --prefix $(PREFIX) >build/install.log 2>&1 || { cat build/install.log; exit 1; }
	@echo "installed below $(DESTDIR)$(PREFIX)"

clean:
	rm -rf build

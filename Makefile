# Everything a developer runs. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

OUT     := _output
BINARY  := $(OUT)/bin/kube-controller-manager
RACE    := $(OUT)/bin/kube-controller-manager-race
# The version of this project, and the API level that the binary stands in for, which is what --version says.
RELEASE := $(shell cat pkg/release/VERSION)
VERSION := $(firstword $(subst -kcm., ,$(RELEASE)))
STAMP   := k8s.io/component-base/version
# Where client-go takes the user agent from.
CLIENT  := k8s.io/client-go/pkg/version
COMMIT  := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
TREE    := $(shell [ -z "$$(git status --porcelain 2>/dev/null)" ] && echo clean || echo dirty)
DATE    := $(shell TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ 2>/dev/null || echo 1970-01-01T00:00:00Z)
LDFLAGS := -s -w \
	-X $(STAMP).gitVersion=$(VERSION) -X $(STAMP).gitMajor=1 -X $(STAMP).gitMinor=36 \
	-X $(STAMP).gitCommit=$(COMMIT) -X $(STAMP).gitTreeState=$(TREE) -X $(STAMP).buildDate=$(DATE) \
	-X $(CLIENT).gitVersion=$(VERSION) -X $(CLIENT).gitMajor=1 -X $(CLIENT).gitMinor=36 -X $(CLIENT).gitCommit=$(COMMIT)
# What the image is for, and where kubectl runs besides.
ARCHES   := amd64 arm64
DESKTOPS := darwin/amd64 darwin/arm64
# The version of the module staging/controllerkit that goes with this tree.
KIT     := $(shell awk '/staging\/controllerkit v/ { print $$(NF); exit }' go.mod)
# What the compiler optimises the product with: where it spent its time in the bench.
PROFILE := build/kube-controller-manager.pgo
UNIT    := ./cmd/... ./pkg/... ./hack/profile ./hack/table ./hack/mutants ./build/examples/... ./test/harness/... ./test/bench/... ./test/explore/faults ./test/explore/prove
GO      := go
# Executables are static. Only the race detector needs a C compiler.
export CGO_ENABLED := 0
# No path of this machine in what is built; and what vet has compiled, a test need not compile again.
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

.PHONY: build
build: ## build the binary into _output/bin
	@mkdir -p $(OUT)/bin
	$(GO) build -pgo=$(PROFILE) -buildvcs=false -ldflags '$(LDFLAGS)' -o $(BINARY) ./cmd/kube-controller-manager

.PHONY: plugin
plugin: ## build the plugin of kubectl, kubectl kcm, into _output/bin
	@mkdir -p $(OUT)/bin
	$(GO) build -buildvcs=false -ldflags '$(LDFLAGS)' -o $(OUT)/bin/kubectl-kcm ./cmd/kubectl-kcm

.PHONY: image
image: ## write the image as an OCI archive, _output/image.tar, for amd64 and arm64; ARCHES=amd64 for one
	@for arch in $(ARCHES); do \
		echo "build for $$arch"; \
		for program in ./cmd/kube-controller-manager k8s.io/component-base/logs/kube-log-runner; do \
			name=$${program##*/}; \
			profile=$(PROFILE); [ $$name = kube-controller-manager ] || profile=off; \
			GOOS=linux GOARCH=$$arch $(GO) build -pgo=$$profile -buildvcs=false -ldflags '$(LDFLAGS)' \
				-o $(OUT)/image/$$arch/$${name/kube-log-runner/go-runner} $$program; \
		done; \
	done
	@cd hack/image && GOWORK=off $(GO) run . $(foreach arch,$(ARCHES),-binaries $(arch)=../../$(OUT)/image/$(arch)) \
		-version $(RELEASE) -api-level $(VERSION) -revision $(COMMIT) -created $(DATE) -license ../../LICENSE -out ../../$(OUT)/image.tar
	@ls -sh $(OUT)/image.tar

.PHONY: version
version: ## print the version of this tree, and the version of Kubernetes that it stands in for
	@echo $(RELEASE) $(VERSION)

.PHONY: release
release: image ## all files of a release into _output/release; the same commit and the same Go give the same bytes
	@if [ -d cmd/kubectl-kcm ]; then \
		for platform in $(ARCHES:%=linux/%) $(DESKTOPS); do \
			echo "build kubectl-kcm for $$platform"; \
			dir=$${platform/#linux\//}; \
			GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) build -buildvcs=false -ldflags '$(LDFLAGS)' -o $(OUT)/image/$${dir/\//-}/kubectl-kcm ./cmd/kubectl-kcm; \
		done; \
	fi
	@platforms="$(foreach arch,$(ARCHES),-binaries linux/$(arch)=../../$(OUT)/image/$(arch))"; \
	if [ -d cmd/kubectl-kcm ]; then platforms="$$platforms $(foreach on,$(DESKTOPS),-binaries $(on)=../../$(OUT)/image/$(subst /,-,$(on)))"; fi; \
	cd hack/image && GOWORK=off $(GO) run ./release $$platforms -version $(RELEASE) -api-level $(VERSION) -kit $(KIT) -created $(DATE) \
		-image ../../$(OUT)/image.tar -manifests ../../build -license ../../LICENSE -out ../../$(OUT)/release
	@cd $(OUT)/release && sha256sum --quiet --check SHA256SUMS && ls -sh

.PHONY: build-race
build-race: ## build the binary with the race detector, for scenarios
	@mkdir -p $(OUT)/bin
	CGO_ENABLED=1 $(GO) build -race -ldflags '$(LDFLAGS)' -o $(RACE) ./cmd/kube-controller-manager

.PHONY: build-examples
build-examples: ## build the examples of build/examples into _output/bin
	@mkdir -p $(OUT)/bin
	$(GO) build -ldflags '$(LDFLAGS)' -o $(OUT)/bin/ ./build/examples/...

.PHONY: tools
tools: ## build etcd, kube-apiserver, kubectl, kwok and the rest into _output/tools/bin
	@env -u CGO_ENABLED GOWORK=off hack/tools/build.sh

.PHONY: tools-containerd
tools-containerd: ## build containerd, ctr and crane into _output/tools/bin
	@env -u CGO_ENABLED GOWORK=off hack/containerd/build.sh

.PHONY: tools-monitoring
tools-monitoring: ## build Prometheus and promtool into _output/tools/bin
	@env -u CGO_ENABLED GOWORK=off hack/monitoring/build.sh

.PHONY: run
run: build tools ## start a local cluster with our binary in it and show it at work
	@hack/run.sh

.PHONY: stop
stop: ## stop the local cluster that run left running
	@hack/stop.sh

.PHONY: test
test: test-unit test-worlds test-image compare-quick test-clusters ## run all tests, quick ones first

.PHONY: test-clusters
test-clusters: tools build build-race plugin build-examples ## scenarios, test-integration, test-e2e and explore-quick, two of them at a time: they wait most of the time
	@$(MAKE) --no-print-directory -j2 --output-sync=target LANES=5 scenarios test-integration test-e2e explore-quick

.PHONY: test-unit
test-unit: ## unit tests, shuffled, with the race detector; verify vets them
	CGO_ENABLED=1 $(GO) test -race -vet=off -shuffle=on -timeout=20m $(UNIT)
	CGO_ENABLED=1 $(GO) test -race -vet=off -timeout=20m -skip='TestStories|TestStatic|TestExplore|TestFields|TestReplay' ./test/compare/... ./test/explore
	cd staging/controllerkit && GOWORK=off CGO_ENABLED=1 $(GO) test -race -vet=off -shuffle=on -timeout=20m ./...

# The packages with small worlds that are played in the order of a seed.
WORLDS = $(shell grep -rl --include='*_test.go' 'testworld\.Seeds' pkg | xargs -n1 dirname | sort -u | sed 's,^,./,')

.PHONY: test-worlds
test-worlds: ## the seeded worlds with all their seeds and a fresh one, without the race detector; WORLD_SEED=N plays that one, WORLD_FRESH=N so many fresh ones
	$(GO) test -count=1 -vet=off -timeout=20m $(WORLDS)

.PHONY: scenarios
scenarios: tools build-race ## the stories of test/scenarios on a real etcd and kube-apiserver
	KCM_BINARY=$(CURDIR)/$(RACE) CGO_ENABLED=1 $(GO) test -count=1 -race -vet=off -timeout=60m ./test/scenarios/... $(if $(LANES),-lanes=$(LANES))

.PHONY: test-integration
test-integration: tools build plugin build-examples ## what a story cannot say, on a real etcd and kube-apiserver; what mostly waits, three at a time
	KCM_BINARY=$(CURDIR)/$(BINARY) $(GO) test -count=1 -vet=off -parallel=3 -timeout=30m -skip=TestRulesAndDashboardFit ./test/integration/...

.PHONY: test-monitoring
test-monitoring: tools tools-monitoring build ## the rules and the dashboard of build/monitoring, by Prometheus, on their own and against the binary; not in CI
	$(GO) test -count=1 -vet=off ./test/monitoring
	KCM_BINARY=$(CURDIR)/$(BINARY) $(GO) test -count=1 -vet=off ./test/integration -run 'TestRulesAndDashboardFit|TestMetricsAreAsDocumented'

.PHONY: test-image
test-image: tools tools-containerd build plugin ## a release is whole on all platforms, its image starts where the original's does, and the documents of operators hold
	@$(MAKE) --no-print-directory release
	cd hack/image && GOWORK=off $(GO) test -vet=off ./...
	KCM_BINARY=$(CURDIR)/$(BINARY) $(GO) test -count=1 -vet=off -timeout=30m ./test/image
	KCM_BINARY=$(CURDIR)/$(BINARY) $(GO) test -count=1 -vet=off -timeout=30m ./test/docs

.PHONY: test-e2e
test-e2e: tools build ## the built binary in whole clusters, three of them side by side
	KCM_BINARY=$(CURDIR)/$(BINARY) $(GO) test -count=1 -vet=off -parallel=3 -timeout=40m ./test/e2e/...

.PHONY: bench-go
bench-go: ## Go benchmarks: the cost of one change in small and large namespaces
	$(GO) test -run='^$$' -bench=. -benchmem ./pkg/...

.PHONY: table
table: ## docs/measured/controllers.md: tests of each controller and the time of its reconcile; BENCHTIME=1s
	@mkdir -p $(OUT)
	$(GO) test -run='^$$' -bench=. -benchtime=$(or $(BENCHTIME),1s) ./pkg/... >$(OUT)/bench-go.txt
	$(GO) run ./hack/table $(OUT)/bench-go.txt >$(OUT)/controllers.md
	mv $(OUT)/controllers.md docs/measured/controllers.md

.PHONY: compare
compare: tools build ## all stories under the original and under ours, side by side: _output/compare
	KCM_BINARY=$(CURDIR)/$(BINARY) $(GO) test -v -count=1 -timeout=100m -run 'TestStories|TestStatic' ./test/compare/...

# One quick story of each kind of controller.
QUICK := serviceaccount-recreated,serviceaccounttoken-fill,rootca-repaired,replicaset-scale,deployment-recreate,endpoints-named-ports,endpointslice-follow-pods,namespace-emptied,nodelifecycle-conditions,statefulset-identity,daemonset-pod,job-parallelism,cronjob-start,disruption-eviction,ttl-after-finished-pods,hpa-cpu

.PHONY: compare-quick
compare-quick: tools build ## a few stories under both binaries, and a tiny bench; behaviour decides, no time does
	KCM_BINARY=$(CURDIR)/$(BINARY) $(GO) test -count=1 -timeout=10m ./test/compare -run TestStories -once=false -story=$(QUICK) -out=$(CURDIR)/$(OUT)/compare-quick
	$(GO) build -o $(OUT)/bin/bench ./test/bench
	$(OUT)/bin/bench -only rollout -limits off -rollout-nodes 2 -rollout-deployments 2 -rollout-replicas 3 -timeout 10m -out $(OUT)/bench-quick

.PHONY: explore-proof
explore-proof: tools ## the explorer finds each fault of test/explore/faults, or FAULTS=01,02; LANES=1: _output/explore-proof
	$(GO) run ./test/explore/prove -ldflags '$(LDFLAGS)' -faults=$(FAULTS) $(if $(LANES),-lanes=$(LANES))

.PHONY: explore
explore: tools build ## stories made by chance under both binaries; FOR=3h FAMILIES=job,cronjob SEED=1: _output/explore
	KCM_BINARY=$(CURDIR)/$(BINARY) $(GO) test -v -count=1 -timeout=0 ./test/explore -run TestExplore -for=$(or $(FOR),1h) -seed=$(or $(SEED),1) $(if $(FAMILIES),-families=$(FAMILIES))

# A seed of each family: a short one, in which nothing is a matter of chance.
SEEDS := collector-204,cronjob-201,daemonset-202,deployment-202,device-203,disruption-201,hpa-201,job-201,mirror-203,namespace-203,node-203,noderange-204,policy-205,quota-201,range-204,replicationcontroller-201,role-204,selinux-202,service-203,statefulset-201,token-201,volume-202

.PHONY: explore-quick
explore-quick: tools build ## a fixed seed of each family under both binaries: two minutes
	KCM_BINARY=$(CURDIR)/$(BINARY) $(GO) test -count=1 -vet=off -timeout=20m ./test/explore -run TestExplore -pick=$(SEEDS) -shrink=1m -out=$(CURDIR)/$(OUT)/explore-quick

.PHONY: bench
bench: tools build ## the same work on the original and on ours, small sizes: _output/bench
	$(GO) build -o $(OUT)/bin/bench ./test/bench
	$(OUT)/bin/bench -quick -floor -timeout 30m

.PHONY: bench-full
bench-full: tools build ## the same with sizes that matter, three rounds; some hours
	$(GO) build -o $(OUT)/bin/bench ./test/bench
	$(OUT)/bin/bench -floor -rounds 3 -timeout 5h

.PHONY: profile
profile: tools build ## write the profile that make build uses, from the bench: some ten minutes
	$(GO) build -o $(OUT)/bin/bench ./test/bench
	$(OUT)/bin/bench -only jobs,rollout -limits off -profile 60 -timeout 1h -out $(OUT)/profile
	$(GO) run ./hack/profile -out $(PROFILE) $(OUT)/profile/profiles/*-ours-cpu.pb.gz

.PHONY: mutate
mutate: ## change the code of pure packages and see whether their tests notice: _output/mutate; PACKAGES=pkg/workload/pods, AGAIN=1 tries what lived
	@$(GO) run ./hack/mutants $(if $(AGAIN),-again) $(PACKAGES)

.PHONY: verify
verify: tools ## formatting, vet, staticcheck, and the rules of the house
	@hack/verify.sh

.PHONY: flake
flake: tools build-race ## everything shuffled, raced and repeated, to find the test that fails sometimes
	CGO_ENABLED=1 $(GO) test -race -vet=off -shuffle=on -count=10 $(UNIT)
	cd staging/controllerkit && GOWORK=off CGO_ENABLED=1 $(GO) test -race -vet=off -shuffle=on -count=20 ./...
	KCM_BINARY=$(CURDIR)/$(RACE) $(GO) test -count=3 -timeout=90m ./test/scenarios/...

.PHONY: flags-doc
flags-doc: ## write docs/operate/flags.md from the flags
	UPDATE=1 $(GO) test -count=1 -vet=off -run TestOwnFlagsAreDocumented ./cmd/kube-controller-manager/app/options

.PHONY: split-manifests
split-manifests: ## write build/split as plan-split plans it
	@mkdir -p build/split
	UPDATE=1 $(GO) test -count=1 -vet=off -run TestTheManifestsOfASplitAreThosePlanned ./cmd/kube-controller-manager/app

.PHONY: tidy
tidy: ## bring go.mod and go.sum of all modules in line with what is imported
	@for dir in . staging/controllerkit hack/image; do hack/tidy.sh $$dir; done

.PHONY: kit-sum
kit-sum: ## put the checksums of the kit at HEAD into go.sum, before a release is tagged
	@cd hack/image && GOWORK=off $(GO) run ./kit -version $(KIT) >../../$(OUT)/kit.sum
	@hack/tidy.sh . -sums $(OUT)/kit.sum

.PHONY: clean
clean: stop ## stop the cluster, and remove it and the binaries that were built
	rm -rf $(OUT)/bin $(OUT)/cluster

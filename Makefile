# Microtome. `make` lists the targets. `make demo` and `make test` set up what
# they need, system packages included (as root, or by sudo); a second run needs
# no network.

GO ?= go
BUILD := .build
BIN := bin/microtome
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)
PY := $(BUILD)/venv/bin/python
FUZZTIME ?= 20s
KERNELS ?= decode/gpu/native

.PHONY: help demo test build setup setup-test viewer check unit race nocgo browser pixels fuzz kernels shims deploy release clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

demo: build ## set up, build, and serve a synthetic slide with the viewer open to a browser
	$(BIN) serve --open

test: setup-test build check deploy unit race nocgo browser pixels fuzz ## set up and run all tests

build: setup viewer ## the binary, bin/microtome; with libvips-dev also its WebP worker
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/microtome
	@if pkg-config --exists vips 2>/dev/null; then \
	  echo '$(GO) build -tags vips -o bin/ ./cmd/microtome-vips-worker'; \
	  $(GO) build -trimpath -tags vips -o bin/ ./cmd/microtome-vips-worker; \
	else echo 'no libvips-dev: built without WebP'; fi

setup: ## system packages to build (compiler, libjpeg-turbo, OpenJPEG, Node)
	@scripts/setup build

setup-test: ## more of them for the tests (Chromium, libvips), and OpenSlide 4.0.1 from PyPI
	@scripts/setup test

viewer: setup ## the viewer's pages, bundled from npm packages
	@scripts/viewer

check: ## formatting, vet, and the house limits
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...

unit: ## every Go test but the browser's
	MICROTOME_OPENSLIDE_PYTHON=$(abspath $(PY)) GOEXPERIMENT=cgocheck2 $(GO) test $$($(GO) list ./... | grep -v /browsertest)

race: ## what shares memory, under the race detector; GPU slots poisoned, leaks told
	$(GO) test -race ./cache/... ./decode/... ./library/... ./tiles/... ./web ./web/deepzoom
	$(GO) test -tags gpupoison ./decode/gpu/...
	$(GO) test -tags gpupoison -run 'Device|Kills' ./tiles

nocgo: ## everything that must work without a C compiler
	CGO_ENABLED=0 $(GO) build ./...
	CGO_ENABLED=0 $(GO) test . ./cache/... ./formats/... ./library/... ./synth/... ./web/deepzoom

browser: viewer ## the pages in a real headless Chromium
	cd web/viewer && npm test --silent
	MICROTOME_REQUIRE_BROWSER=1 $(GO) test -count=1 ./web/viewer/...

pixels: build ## our pixels and properties against the real OpenSlide 4.0.1
	scripts/pixels $(BIN) $(PY)

fuzz: ## every fuzz target, FUZZTIME each
	scripts/fuzz $(FUZZTIME)

kernels: ## the GPU kernels anew, PTX and AMD code objects, by clang-19; committed, and a test builds them again
	scripts/kernels $(KERNELS)

shims: ## HIP over CUDA and rocJPEG over nvJPEG, to test the AMD engine on an NVIDIA GPU, and that test, in .build/shims
	decode/gpu/shim/build $(BUILD)/shims
	$(GO) test -c -o $(BUILD)/shims/gpu.test ./decode/gpu

deploy: build ## lint and parse the Dockerfile, the compose file and the systemd unit; run none
	@scripts/setup deploy
	scripts/deploy_check $(BIN)

release: build ## archives for Linux with licences and SHA256SUMS, checked, in dist/
	scripts/release '$(VERSION)' '$(LDFLAGS)'

clean: ## what was built, caches of the build included
	rm -rf bin dist $(BUILD) web/viewer/node_modules
	find web/viewer/dist -mindepth 1 ! -name .gitkeep -delete 2>/dev/null || true

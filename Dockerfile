# Microtome in an image. docs/deploy.md says how it is run.
#
#   docker build -t microtome .
#   docker run -p 127.0.0.1:8080:8080 -e MICROTOME_TOKEN=... -v "$PWD/slides:/slides:ro" microtome

# What the binary runs on. It needs glibc of Debian 12 and nothing else: no
# shell, no package manager. debian:12-slim does as well.
ARG RUNTIME=gcr.io/distroless/base-nossl-debian12:latest

FROM golang:1.26-bookworm AS build
WORKDIR /src
# The packages and the modules first: they change less often than the sources.
COPY scripts/setup scripts/setup
COPY go.mod go.sum ./
RUN scripts/setup build && go mod download
COPY . .
# The version is git's: it stands in every ETag. Give VERSION where there is no .git.
ARG VERSION
RUN make build \
 && install -D bin/microtome /out/usr/bin/microtome \
 && install -D -m 644 LICENSE /out/usr/share/doc/microtome/LICENSE \
 && scripts/licenses /out/usr/share/doc/microtome/licenses \
 && mkdir -p /state/microtome

FROM ${RUNTIME}
COPY --from=build /out/ /
# Built levels and the demo slide; the folder belongs to who runs.
COPY --from=build --chown=65532:65532 /state/ /var/cache/
ENV MICROTOME_LISTEN=0.0.0.0:8080 XDG_CACHE_HOME=/var/cache
EXPOSE 8080
USER 65532:65532
VOLUME ["/var/cache/microtome"]
# The probe is the binary itself; it reads the same settings as the server.
HEALTHCHECK --interval=30s --timeout=5s --start-period=15s --retries=3 CMD ["/usr/bin/microtome", "health"]
ENTRYPOINT ["/usr/bin/microtome"]
# /slides is mounted, read only. Beyond loopback the server starts with
# MICROTOME_TOKEN alone, or with MICROTOME_INSECURE=true.
CMD ["serve", "/slides"]

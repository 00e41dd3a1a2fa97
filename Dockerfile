# syntax=docker/dockerfile:1
# The server alone: no shell, no package manager, user 10001. The build takes half an hour on two cores.
#
#   docker build -t tributary .
#
# A release should give the base images by digest: --build-arg BUILD_IMAGE=rust@sha256:… --build-arg BASE_IMAGE=debian@sha256:…
ARG BUILD_IMAGE=rust:1.95-bookworm
ARG BASE_IMAGE=debian:bookworm-slim

FROM ${BUILD_IMAGE} AS build
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends cmake libssl-dev pkg-config \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/source/target \
    cargo build --release --locked --package tributary \
 && strip -o /tributary target/release/tributary

# The libraries of the binary, as ldd finds them, with the files that glibc and TLS read.
FROM ${BASE_IMAGE} AS root
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates libssl3 tzdata zlib1g \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /tributary /usr/bin/tributary
COPY packaging/container/collect-root /usr/bin/collect-root
RUN collect-root /usr/bin/tributary /root-of-image

FROM scratch
COPY --from=root /root-of-image /
# Numbers, so that orchestrators see that it is not root.
USER 10001:10001
ENV PATH=/usr/bin \
    TRIBUTARY_STORAGE_ROOT_PATH=/var/lib/tributary
WORKDIR /var/lib/tributary
VOLUME ["/var/lib/tributary"]
EXPOSE 9030 8030 8040
STOPSIGNAL SIGTERM
# For Docker alone. Orchestrators ask /api/health and /api/ready over HTTP.
HEALTHCHECK --interval=10s --start-period=10m CMD ["/usr/bin/tributary", "status", "--quiet"]
ENTRYPOINT ["/usr/bin/tributary"]
CMD ["serve"]

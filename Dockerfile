# syntax=docker/dockerfile:1

# The build runs on the machine's own platform and compiles for the wanted one.
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags="-s -w" -o /out/botd ./cmd/botd \
    && mkdir -p /out/data

# No shell and no package manager; certificates and time zones are there. The user is 65532.
FROM gcr.io/distroless/static-debian13:nonroot
LABEL org.opencontainers.image.title="botd" \
      org.opencontainers.image.description="Joins people on LINE and Discord to one shared agent engine that remembers" \
      org.opencontainers.image.licenses="MIT"
COPY --from=build /out/botd /usr/local/bin/botd
COPY --from=build --chown=65532:65532 /out/data /var/lib/botd
# The default of store is ./data/botd.db below this folder; the root file system can be read-only. Without a
# configuration file the environment is read; to use a file, mount it and name it in BOTD_CONFIG.
WORKDIR /var/lib/botd
VOLUME /var/lib/botd
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 CMD ["/usr/local/bin/botd", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/botd"]
CMD ["run"]

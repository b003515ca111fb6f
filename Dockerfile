# The service and its command line on Debian 12. Build: docker build -t spexd .
# With the CUDA engine: docker build --target cuda --build-arg CUDA_IMAGE=... -t spexd:cuda .
#
# As it starts, spexd listens on the container's loopback only; deploy/compose.yaml shows how to reach it from outside.

# An image of Debian 12 with the CUDA toolkit (nvcc). Only the target `cuda` uses it.
ARG CUDA_IMAGE=debian:12-slim

FROM debian:12-slim AS build
WORKDIR /src
# First alone, so that editing sources does not install packages again.
COPY scripts/install-deps.sh scripts/
RUN scripts/install-deps.sh && rm -rf /var/lib/apt/lists/*
COPY . .
RUN cmake --preset release \
    && cmake --build --preset release --target spex spexd \
    && cmake --install build/release --prefix /opt/spexd --strip

FROM ${CUDA_IMAGE} AS build-cuda
WORKDIR /src
COPY scripts/install-deps.sh scripts/
RUN scripts/install-deps.sh && rm -rf /var/lib/apt/lists/*
COPY . .
RUN PATH="$PATH:/usr/local/cuda/bin" cmake --preset cuda \
    && PATH="$PATH:/usr/local/cuda/bin" cmake --build --preset cuda \
    && cmake --install build/cuda --prefix /opt/spexd --strip \
    && test -f /opt/spexd/lib/spexd/libspexd_cuda.so

FROM debian:12-slim AS programs
# What the two programs load, and curl for the health check. `spex plot` needs Python and is left to workstations.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        ca-certificates curl libabsl20220623 libcfitsio10 libdeflate0 liberfa1 libgrpc++1.51 \
        libhwy1 libmicrohttpd12 libprometheus-cpp-core1.0 libprotobuf32 libsleef3 libssl3 zlib1g \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin spexd
COPY --from=build /opt/spexd/bin/ /usr/local/bin/
COPY LICENSE /usr/share/doc/spexd/
# A library that the list above lacks fails the build, not the first start.
RUN spexd --version && spex --version
USER 10001:10001
# gRPC, and /metrics, /livez, /readyz.
EXPOSE 50051 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["curl", "--silent", "--fail", "--noproxy", "*", "--output", "/dev/null", "http://127.0.0.1:9464/readyz"]
ENTRYPOINT ["spexd"]

# The programs and, where they look for it, the module. The driver's own libraries come from the machine (NVIDIA's container toolkit).
FROM programs AS cuda
COPY --from=build-cuda /opt/spexd/lib/spexd/libspexd_cuda.so /usr/local/lib/spexd/
RUN ! ldd /usr/local/lib/spexd/libspexd_cuda.so | grep -v libcuda.so | grep "not found"
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility

# Without a target: the programs alone, on the CPU.
FROM programs

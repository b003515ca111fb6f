# The service and its command line on Debian 12. Build: docker build -t spexd .
# With the CUDA engine: docker build --target cuda --build-arg CUDA_IMAGE=... -t spexd:cuda .
# deploy/container.sh builds it with docker, podman or buildah, and checks the image.
#
# By default spexd listens only on the container's loopback; deploy/compose.yaml shows how to make it reachable from outside.

# `--build-arg SPEXD_COMMIT=$(git describe --always --dirty --abbrev=12)`: the build does not see git's folder.
ARG SPEXD_COMMIT=

# An image of Debian 12, on which the programs are built and run.
ARG BASE_IMAGE=debian:12-slim

# An image of Debian 12 with the CUDA toolkit (nvcc). Only the target `cuda` uses it.
ARG CUDA_IMAGE=debian:12-slim

FROM ${BASE_IMAGE} AS build
ARG SPEXD_COMMIT
WORKDIR /src
# In a layer of its own, so that editing sources does not install the packages again.
COPY scripts/install-deps.sh scripts/
RUN scripts/install-deps.sh ccache && rm -rf /var/lib/apt/lists/*
# A mounted compiler cache may also contain the objects of other clones.
ENV CCACHE_BASEDIR=/src CCACHE_NOHASHDIR=1 LC_ALL=C.UTF-8
COPY . .
RUN cmake --preset release -DSPEXD_COMMIT=${SPEXD_COMMIT} \
    && cmake --build --preset release --target spex spexd \
    && for part in spexd spex; do cmake --install build/release --prefix /opt/spexd --strip --component $part; done

FROM ${BASE_IMAGE} AS packages
# The libraries of the two programs, and curl for the health check. `spex plot` needs Python and is left to workstations.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        ca-certificates curl libabsl20220623 libcfitsio10 libdeflate0 liberfa1 libgrpc++1.51 libisal2 \
        libhwy1 liblapacke libmicrohttpd12 libopenblas0 libprometheus-cpp-core1.0 libprotobuf32 libsleef3 libssl3 zlib1g \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin spexd

# The SBOM of the image: the packages above, and the libraries compiled into the programs.
FROM build AS sbom
COPY --from=packages /var/lib/dpkg/status /tmp/status
RUN dpkg-query -W -f '--linked ${source:Package}=${Version} ' libcli11-dev nlohmann-json3-dev > /tmp/parts \
    && scripts/sbom.py "$(/opt/spexd/bin/spexd --version | cut -d' ' -f2)" /tmp/status $(cat /tmp/parts) > /opt/spexd/sbom.spdx.json

FROM packages AS programs
COPY --from=build /opt/spexd/bin/ /usr/local/bin/
COPY --from=sbom /opt/spexd/sbom.spdx.json /usr/share/doc/spexd/
COPY LICENSE /usr/share/doc/spexd/
# If the list above lacks a library, the build fails here instead of the first start.
RUN spexd --version && spex --version
USER 10001:10001
# Ports: gRPC; HTTP with /metrics, /livez and /readyz.
EXPOSE 50051 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["curl", "--silent", "--fail", "--noproxy", "*", "--output", "/dev/null", "http://127.0.0.1:9464/readyz"]
ENTRYPOINT ["spexd"]

FROM ${CUDA_IMAGE} AS build-cuda
ARG SPEXD_COMMIT
WORKDIR /src
COPY scripts/install-deps.sh scripts/
RUN scripts/install-deps.sh ccache && rm -rf /var/lib/apt/lists/*
ENV CCACHE_BASEDIR=/src CCACHE_NOHASHDIR=1 LC_ALL=C.UTF-8
COPY . .
# Copies the toolkit's cuBLAS, which the module looks up by name.
RUN PATH="$PATH:/usr/local/cuda/bin" cmake --preset cuda -DSPEXD_COMMIT=${SPEXD_COMMIT} \
    && PATH="$PATH:/usr/local/cuda/bin" cmake --build --preset cuda --target spexd_cuda \
    && cmake --install build/cuda --prefix /opt/spexd --strip --component cuda \
    && test -f /opt/spexd/lib/spexd/libspexd_cuda.so \
    && cp -L /usr/local/cuda/lib64/libcublas.so.?? /usr/local/cuda/lib64/libcublasLt.so.?? /opt/spexd/lib/
RUN echo "--linked cuda-toolkit=$(/usr/local/cuda/bin/nvcc --version | sed -n 's/.*, V//p')" \
        "--bundled cublas=$(sed -n 's/^#define CUBLAS_VER_[A-Z]* //p' /usr/local/cuda/include/cublas_api.h | paste -sd.)" > /opt/parts

FROM sbom AS sbom-cuda
COPY --from=build-cuda /opt/parts /tmp/parts-cuda
RUN scripts/sbom.py "$(/opt/spexd/bin/spexd --version | cut -d' ' -f2)" /tmp/status $(cat /tmp/parts /tmp/parts-cuda) \
        > /opt/spexd/sbom.spdx.json

# The programs, the module in the folder where they look for it, and cuBLAS in the folder where the system's loader looks.
# The driver's own libraries come from the host (NVIDIA's container toolkit).
FROM programs AS cuda
USER 0:0
COPY --from=build-cuda /opt/spexd/lib/ /usr/local/lib/
COPY --from=sbom-cuda /opt/spexd/sbom.spdx.json /usr/share/doc/spexd/
RUN ldconfig && ! ldd /usr/local/lib/spexd/libspexd_cuda.so | grep -v libcuda.so | grep "not found"
USER 10001:10001
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility

# The default target: the programs alone, on the CPU.
FROM programs

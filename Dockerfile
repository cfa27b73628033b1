# foretrace with its harness on a host with NVIDIA GPUs:
#   docker build -t foretrace .
#   docker run --rm --gpus all --shm-size 8g -v "$PWD/out:/out" foretrace \
#     mpirun --allow-run-as-root --bind-to none -n 2 foretrace-hw measure scenarios/collectives/all_reduce.yaml -o /out/run
# Another CUDA: --build-arg CUDA=12.8.1. NCCL's shared memory is why --shm-size is there.
# Without GPUs and the harness, wherever Docker runs: docker build -t foretrace --build-arg BASE=debian:13 --build-arg HARNESS=OFF .
# tests/install/docker_root.sh runs these commands without Docker.
ARG CUDA=12.8.1
ARG BASE=nvidia/cuda:${CUDA}-devel-ubuntu24.04
FROM ${BASE} AS build
ARG HARNESS=ON
COPY setup.sh /source/setup.sh
RUN bash -euc 'source /source/setup.sh; install_packages "${PACKAGES[@]}"'
RUN bash -euc 'source /source/setup.sh; if [ "$HARNESS" = ON ]; then install_packages "${HARNESS_PACKAGES[@]}"; fi'
COPY . /source
RUN cd /source && cmake --preset release -DFORETRACE_HW="$HARNESS" -DFORETRACE_BUILD_TESTS=OFF
RUN cmake --build /source/build/release
RUN cmake --install /source/build/release --prefix /opt/foretrace --component program
RUN if [ "$HARNESS" = ON ]; then cmake --install /source/build/release --prefix /opt/foretrace --component harness; fi
RUN bash -euc 'source /source/setup.sh; packages_of /opt/foretrace/bin/* /opt/foretrace/lib/foretrace/*.so >/opt/foretrace/packages'
RUN if [ "$HARNESS" = ON ]; then echo openmpi-bin >>/opt/foretrace/packages; fi

FROM ${BASE}
COPY --from=build /opt/foretrace /opt/foretrace
COPY setup.sh /opt/foretrace/setup.sh
RUN bash -euc 'source /opt/foretrace/setup.sh; install_packages $(cat /opt/foretrace/packages)'
RUN ln -s /opt/foretrace/bin/* /usr/local/bin/
WORKDIR /work
CMD ["foretrace", "--help"]

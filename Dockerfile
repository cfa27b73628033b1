# foretrace with its harness on a host with NVIDIA GPUs:
#   docker build -t foretrace .
#   docker run --rm --gpus all --shm-size 8g -v "$PWD/out:/out" foretrace \
#     mpirun --allow-run-as-root --bind-to none -n 2 foretrace-hw measure scenarios/collectives/all_reduce.yaml -o /out/run
# Another CUDA: --build-arg CUDA=12.8.1. NCCL's shared memory is why --shm-size is there.
ARG CUDA=12.8.1
FROM nvidia/cuda:${CUDA}-devel-ubuntu24.04 AS build
COPY setup.sh /source/setup.sh
RUN cd /source && bash -c 'source ./setup.sh && install_packages' \
 && apt-get install -y -q --no-install-recommends libopenmpi-dev openmpi-bin libnccl-dev
COPY . /source
RUN cd /source && cmake --preset release -DFORETRACE_HW=ON -DFORETRACE_BUILD_TESTS=OFF \
 && cmake --build build/release \
 && cmake --install build/release --prefix /opt/foretrace --component program \
 && cmake --install build/release --prefix /opt/foretrace --component harness

FROM nvidia/cuda:${CUDA}-devel-ubuntu24.04
COPY --from=build /opt/foretrace /opt/foretrace
RUN apt-get update -q && apt-get install -y -q --no-install-recommends \
      libsimgrid-dev libyaml-cpp0.8 libfmt9 libnccl2 openmpi-bin libopenmpi3t64 \
 && rm -rf /var/lib/apt/lists/* && ln -s /opt/foretrace/bin/* /usr/local/bin/
WORKDIR /work
CMD ["foretrace", "--help"]

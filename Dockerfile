# The program `fairtte` in a container.
#
#   docker build -t fairtte .                                            with training on the CPU
#   docker build -t fairtte --build-arg FEATURES=dicom .                 without training
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" fairtte evaluate --predictions curves.csv ..
#
# FEATURES are cargo features of fairtte-cli; those that need more than a C compiler (tch, turbojpeg) or a GPU (cuda,
# wgpu) need other base images. A test compares the versions, features and paths below with the workspace.
ARG RUST=1.95.0
ARG DEBIAN=bookworm

FROM docker.io/library/rust:${RUST}-slim-${DEBIAN} AS build
ARG RUST
ARG FEATURES=train,flex,dicom,schema
# The compiler of the image, without the components that rust-toolchain.toml adds for development.
ENV RUSTUP_TOOLCHAIN=${RUST}
WORKDIR /build
COPY . .
RUN cargo build --locked --release -p fairtte-cli --no-default-features --features "${FEATURES}" \
    && strip target/release/fairtte

FROM docker.io/library/debian:${DEBIAN}-slim
LABEL org.opencontainers.image.title="FairTTE" \
      org.opencontainers.image.source="https://github.com/fairtte/fairtte" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
COPY --from=build /build/target/release/fairtte /usr/local/bin/fairtte
# With those of the packages it is built from, where the release workflow has written them.
COPY --from=build /build/*LICENSE* /usr/share/doc/fairtte/
RUN useradd --uid 1000 --create-home fairtte && install --directory --owner fairtte --group fairtte /work
USER 1000
WORKDIR /work
ENTRYPOINT ["fairtte"]
CMD ["--help"]

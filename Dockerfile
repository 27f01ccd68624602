# The server in an image: docs/guide/containers.md says how to run it.
#
#     docker build -t nvcaracal .

FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
RUN cargo build --profile dist --locked -p nvcaracal-cli \
    && strip --strip-all -o /nvcaracal target/dist/nvcaracal \
    && scripts/release_crates.py third-party >/LICENSES-THIRD-PARTY

# Of the same Debian as the one above, for its glibc.
FROM debian:bookworm-slim
RUN groupadd --system --gid 10001 nvcaracal \
    && useradd --system --uid 10001 --gid nvcaracal --home-dir /var/lib/nvcaracal --no-create-home \
        --shell /usr/sbin/nologin nvcaracal \
    && install -d -m 700 -o nvcaracal -g nvcaracal /var/lib/nvcaracal
COPY --from=build /nvcaracal /usr/local/bin/nvcaracal
COPY --from=build /LICENSES-THIRD-PARTY /usr/share/doc/nvcaracal/
COPY LICENSE-MIT LICENSE-APACHE CHANGELOG.md /usr/share/doc/nvcaracal/
COPY --chmod=755 scripts/healthcheck.sh /usr/local/bin/nvcaracal-healthcheck
USER 10001:10001
WORKDIR /var/lib/nvcaracal
VOLUME /var/lib/nvcaracal
EXPOSE 5433
# Failures count only after the start period: a large log takes a while to replay.
HEALTHCHECK --interval=10s --timeout=5s --retries=3 --start-period=10m CMD ["nvcaracal-healthcheck"]
ENTRYPOINT ["nvcaracal"]
# Without a password a server listens at no address that is reached from outside of the container.
CMD ["serve", "/var/lib/nvcaracal/store", "--listen", "0.0.0.0:5433", \
     "--password-file", "/run/secrets/nvcaracal-password"]

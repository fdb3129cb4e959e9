# 0cron as a container image. Written to only: /data (SQLite file, local key) and /tmp, so --read-only works.
#
#   docker build --tag 0cron .
#   docker run --read-only --tmpfs /tmp --volume 0cron-data:/data --publish 127.0.0.1:8000:8000 --stop-timeout 60 0cron
#
# compose.yaml starts a cluster; docs/operating.md says the rest.

FROM python:3.13-slim-trixie AS build
WORKDIR /build

# Every file from the registry is compared with the lock's hash, and none runs a build script of its own here.
COPY requirements.lock requirements-build.in ./
RUN pip wheel --no-cache-dir --disable-pip-version-check --require-hashes --only-binary=:all: \
        --requirement requirements.lock --wheel-dir /wheels

COPY pyproject.toml README.md ./
COPY src ./src

# What the pages are made of, by the lock file with its hashes; npm comes as a Python package.
COPY requirements-node.lock ./
COPY frontend ./frontend
RUN pip install --no-cache-dir --disable-pip-version-check --require-hashes --only-binary=:all: \
        --requirement requirements-node.lock \
    && python frontend/fetch.py

RUN pip install --no-cache-dir --disable-pip-version-check --no-index --find-links /wheels \
        --requirement requirements-build.in \
    && pip wheel --no-cache-dir --disable-pip-version-check --no-index --no-deps --no-build-isolation \
        --wheel-dir /product .

# Resolved among the wheels of the lock alone, so the versions are the lock's and the build tools stay behind.
RUN python -m venv --without-pip /opt/0cron \
    && pip --python /opt/0cron/bin/python install --no-cache-dir --disable-pip-version-check --no-index \
        --find-links /wheels /product/*.whl


FROM python:3.13-slim-trixie

ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="0cron" \
      org.opencontainers.image.description="Calls your HTTP endpoints at the right second, once, with proof." \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

# A number that no account of the host has by accident; orchestrators that insist on "not root" want to see a number.
RUN groupadd --gid 10001 zerocron \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin zerocron \
    && install --directory --owner 10001 --group 10001 --mode 0700 /data

COPY --from=build /opt/0cron /opt/0cron

ENV PATH="/opt/0cron/bin:${PATH}" \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    ZEROCRON_HOST=0.0.0.0 \
    ZEROCRON_PORT=8000 \
    ZEROCRON_DATA_DIR=/data

USER 10001:10001
WORKDIR /data
VOLUME ["/data"]
EXPOSE 8000

# SIGTERM drains for ZEROCRON_DRAIN_SECONDS (30). Docker kills after 10 s unless it is told to wait: --stop-timeout 60.
STOPSIGNAL SIGTERM

# Alive, not ready: some orchestrators kill what is unhealthy, and a node that waits for its database must not be killed
# with the results it still has to record. Ask /readyz where the answer decides about traffic or order of start only.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import http.client, os, sys; c = http.client.HTTPConnection('127.0.0.1', int(os.environ['ZEROCRON_PORT']), timeout=4); c.request('GET', '/healthz'); sys.exit(c.getresponse().status != 200)"]

ENTRYPOINT ["0cron"]
CMD ["serve"]

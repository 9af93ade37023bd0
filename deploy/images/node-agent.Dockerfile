# Build in the root of the project, with the base's digest (README.md beside this file):
#   docker build -f deploy/images/node-agent.Dockerfile --build-arg PYTHON=python:3.11-slim-bookworm@sha256:… .
ARG PYTHON

FROM ${PYTHON} AS build
ARG PYTHON
# A tag names another image tomorrow.
RUN case "$PYTHON" in *@sha256:*) ;; *) echo "PYTHON: '$PYTHON' is not allowed; allowed: NAME:TAG@sha256:DIGEST" >&2; exit 1 ;; esac
WORKDIR /src
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY hami_web hami_web
COPY node_agent node_agent
COPY templates templates
COPY static static
COPY deploy/images/assemble deploy/images/contents deploy/images/
COPY deploy/images/locks deploy/images/locks
RUN python3 -m venv /tools && /tools/bin/pip install --quiet --no-cache-dir --require-hashes -r deploy/images/locks/build.txt
RUN /tools/bin/pip wheel --quiet --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels .
RUN TOOLS=/tools/bin deploy/images/assemble node-agent /opt/hami /wheels/*.whl

FROM ${PYTHON}
LABEL org.opencontainers.image.title="hami-web node-agent" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/hami /opt/hami
ENV PATH=/opt/hami/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /
# Device nodes that make GPU instances are root's; it is the only role that needs it.
USER 0:0
CMD ["hami-node-agent"]

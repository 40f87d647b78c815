# One image; the role is the subcommand: serve, dashboard, demo.
FROM python:3.11-slim AS build
WORKDIR /source
RUN python -m venv /opt/gpuledger
COPY . .
RUN /opt/gpuledger/bin/pip install --no-cache-dir .

FROM python:3.11-slim
LABEL org.opencontainers.image.title="gpuledger" \
      org.opencontainers.image.description="Keeps the books of a Kubernetes GPU cluster"
COPY --from=build /opt/gpuledger /opt/gpuledger
ENV PATH=/opt/gpuledger/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/data
# The owner exists by number only: the cluster's rule "runAsNonRoot" wants a number.
RUN install -d -o 65532 -g 65532 /data
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 8080 8501
ENTRYPOINT ["gpuledger"]
CMD ["--help"]

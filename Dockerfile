# Image with the command shardtool. Build it in a clean clone: docker build -t shardtool .
# Usage: docker run --rm -v /data:/data -u "$(id -u)" shardtool pack /data/photos /data/shards

FROM node:22-bookworm-slim AS build
WORKDIR /source
COPY . .
RUN npm run --silent setup \
 && npm run --silent build \
 && mkdir /tarballs \
 && npm pack --silent --ignore-scripts --pack-destination /tarballs \
      ./packages/base ./packages/storage ./packages/format ./packages/reader ./packages/cuda ./packages/writer ./packages/cli \
 && npm install --global --prefix /opt/shardtool --omit=dev --no-audit --no-fund /tarballs/*.tgz

FROM node:22-bookworm-slim
COPY --from=build /opt/shardtool /opt/shardtool
ENV PATH=/opt/shardtool/bin:$PATH \
    NODE_ENV=production
# A number, because Kubernetes cannot check runAsNonRoot for a name.
USER 1000
WORKDIR /data
ENTRYPOINT ["shardtool"]
CMD ["--help"]

// A server for ranges of files: FOLDER LATENCY_MS FAULT_EVERY. Every FAULT_EVERY-th request fails (0: none), with a reset and a
// 503 in turn. It sends its port to the parent process, and on request the number of bytes that it has sent.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

const [folder, latency, faultEvery] = process.argv.slice(2);
let sent = 0;
let requests = 0;

const server = http.createServer((request, response) => {
  const n = ++requests;
  setTimeout(() => {
    if (n % Number(faultEvery) === 0) {
      if ((n / Number(faultEvery)) % 2 === 0) response.writeHead(503).end();
      else request.socket.resetAndDestroy();
      return;
    }
    const file = path.join(folder, decodeURIComponent(new URL(request.url, 'http://host').pathname));
    if (!fs.existsSync(file)) {
      response.writeHead(404).end();
      return;
    }
    const { size } = fs.statSync(file);
    const [, first, last] = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? 'bytes=0-');
    const from = first === '' ? Math.max(0, size - Number(last)) : Number(first);
    const to = first === '' || last === '' ? size : Math.min(size, Number(last) + 1);
    sent += to - from;
    response.writeHead(206, {
      'content-length': to - from,
      'content-range': `bytes ${from}-${to - 1}/${size}`,
      etag: `"${size}"`,
    });
    fs.createReadStream(file, { start: from, end: to - 1, highWaterMark: 1 << 20 }).pipe(response);
  }, Number(latency));
});
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
process.on('message', () => process.send({ sent }));
process.on('disconnect', () => process.exit());

// A server and a client with ws, a clean reference: what fails with these is the suite's own or the
// machine's.
//
//     NODE_PATH=/usr/share/nodejs node reference.js server
//     NODE_PATH=/usr/share/nodejs node reference.js client ADDRESS FIRST-CASE
'use strict';
const { WebSocket, WebSocketServer } = require('ws');

const options = { maxPayload: 256 << 20, perMessageDeflate: { threshold: 0 } };

function echo(socket) {
  socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
  socket.on('error', () => {});
}

function serve() {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, ...options }, () =>
    console.log(`listening on ws 127.0.0.1:${server.address().port}`));
  server.on('connection', echo);
  process.on('SIGTERM', () => process.exit(0));
}

async function walk(address, first) {
  const open = (path, prepare) =>
    new Promise((resolve) => {
      const socket = new WebSocket(`ws://${address}${path}`, options);
      let last;
      socket.on('message', (data) => (last = data));
      socket.on('close', () => resolve(last));
      socket.on('error', () => {});
      prepare(socket);
    });
  const count = JSON.parse(await open('/getCaseCount', () => {}));
  for (let number = first; number <= count; number++) {
    console.log(`case ${number}`);
    await open(`/runCase?case=${number}&agent=towpath`, echo);
  }
  await open('/updateReports?agent=towpath', () => {});
}

const [side, address, first] = process.argv.slice(2);
if (side === 'server') serve();
else walk(address, Number(first));

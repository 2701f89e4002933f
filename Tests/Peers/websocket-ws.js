// A WebSocket peer with `ws`, for the tests of interop; how it is called: see WebSocketPeer.swift.
'use strict';
const fs = require('fs');
const { WebSocket, WebSocketServer } = require('ws');

const [side, compression, url, purpose, root] = process.argv.slice(2);
const options = {
  maxPayload: 256 << 20,
  perMessageDeflate: compression === 'deflate' ? { threshold: 0 } : false,
};
const opened = (peer) => console.log('open', peer.extensions ? 'deflate' : 'plain');
const watch = (peer) => {
  peer.on('close', (code, reason) => console.log(`closed ${code} ${reason}`));
  peer.on('error', (error) => console.error(String(error)));
};

function server() {
  const listening = new WebSocketServer({ host: '127.0.0.1', port: 0, ...options }, () =>
    console.log(listening.address().port));
  listening.on('connection', (peer) => {
    opened(peer);
    watch(peer);
    peer.on('pong', () => peer.send('pong'));
    peer.on('message', (data, isBinary) => {
      const [word, code, ...reason] = isBinary ? [] : data.toString().split(' ');
      if (word === 'close') peer.close(Number(code), reason.join(' '));
      else if (word === 'ping') peer.ping('are you there');
      else peer.send(data, { binary: isBinary });
    });
  });
}

function client() {
  const peer = new WebSocket(url, { ...options, ca: root && fs.readFileSync(root) });
  const messages = [
    '', 'h\u00e9llo \u{1f600}', Buffer.from([...Array(256).keys()]), 'x'.repeat(200_000),
    Buffer.alloc(200_000),
  ];
  let index = 0;
  watch(peer);
  peer.on('open', () => {
    opened(peer);
    peer.send(purpose === 'echo' ? messages[0] : purpose);
  });
  peer.on('message', (data, isBinary) => {
    if (purpose !== 'echo') return console.log(data.toString());
    const sent = messages[index++];
    const isSame = isBinary === (typeof sent !== 'string') && data.equals(Buffer.from(sent));
    console.log(isSame ? 'same' : 'different');
    if (index < messages.length) peer.send(messages[index]);
    else peer.ping('are you there');
  });
  peer.on('pong', () => {
    console.log('pong');
    peer.close(3001, 'bye');
  });
}

if (side === 'server') server();
else client();

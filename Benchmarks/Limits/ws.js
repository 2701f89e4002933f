// An echo server on the package `ws` of node: `node ws.js [deflate]`. Prints "tcp PORT udp 0".
'use strict';
const { WebSocketServer } = require('ws');

const server = new WebSocketServer({
    host: '127.0.0.1',
    port: 0,
    perMessageDeflate: process.argv[2] === 'deflate',
});
server.on('connection', (connection) => {
    connection.on('message', (data, binary) => connection.send(data, { binary }));
});
server.on('listening', () => console.log(`tcp ${server.address().port} udp 0`));

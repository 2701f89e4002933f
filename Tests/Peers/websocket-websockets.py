"""A WebSocket peer with `websockets`, for the tests of interop; how it is called: see WebSocketPeer.swift."""
import asyncio
import ssl
import sys

from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

BOTH = {"max_size": None, "ping_interval": None}


def opened(peer):
    print("open", "deflate" if peer.protocol.extensions else "plain", flush=True)


def closed(peer):
    print(f"closed {peer.close_code} {peer.close_reason}", flush=True)


async def handle(peer):
    opened(peer)
    try:
        async for message in peer:
            words = message.split(" ", 2) if isinstance(message, str) else [""]
            if words[0] == "close":
                await peer.close(int(words[1]), words[2])
            elif message == "ping":
                await (await peer.ping(b"are you there"))
                await peer.send("pong")
            else:
                await peer.send(message)
    except ConnectionClosed:
        pass
    closed(peer)


async def server(compression):
    async with serve(handle, "127.0.0.1", 0, compression=compression, **BOTH) as listening:
        print(listening.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().create_future()


async def client(compression, url, purpose, root):
    trust = ssl.create_default_context(cafile=root) if root else None
    async with connect(url, compression=compression, proxy=None, ssl=trust, **BOTH) as peer:
        opened(peer)
        if purpose == "echo":
            for message in ["", "h\u00e9llo \U0001f600", bytes(range(256)), "x" * 200_000, bytes(200_000)]:
                await peer.send(message)
                print("same" if await peer.recv() == message else "different", flush=True)
            await (await peer.ping(b"are you there"))
            print("pong", flush=True)
            await peer.close(3001, "bye")
        else:
            await peer.send(purpose)
            try:
                while True:
                    print(await peer.recv(), flush=True)
            except ConnectionClosed:
                pass
    closed(peer)


side, compression, *rest = sys.argv[1:]
compression = "deflate" if compression == "deflate" else None
asyncio.run(server(compression) if side == "server" else client(compression, *rest[:2], *(rest[2:] or [None])))

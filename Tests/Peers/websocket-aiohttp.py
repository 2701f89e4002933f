"""A WebSocket peer with `aiohttp`, for the tests of interop; how it is called: see WebSocketPeer.swift."""
import asyncio
import ssl
import sys

from aiohttp import ClientSession, WSMsgType, web


def opened(peer):
    print("open", "deflate" if peer.compress else "plain", flush=True)


async def send(peer, message):
    await (peer.send_str(message) if isinstance(message, str) else peer.send_bytes(message))


def closed(message):
    """The Close frame, or that there was none."""
    if message.type is WSMsgType.CLOSE:
        print(f"closed {message.data} {message.extra or ''}", flush=True)
    else:
        print("closed 1006 ", flush=True)


async def handle(request):
    peer = web.WebSocketResponse(max_msg_size=0, compress=request.app["deflate"])
    await peer.prepare(request)
    opened(peer)
    while True:
        message = await peer.receive()
        if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            break
        words = message.data.split(" ", 2) if message.type is WSMsgType.TEXT else [""]
        if words[0] == "close":
            await peer.close(code=int(words[1]), message=words[2].encode())
            print(f"closed {peer.close_code} {words[2]}", flush=True)
            return peer
        await send(peer, message.data)
    closed(message)
    return peer


async def server(deflate):
    application = web.Application()
    application["deflate"] = deflate
    application.router.add_get("/", handle)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.get_running_loop().create_future()


async def client(deflate, url, purpose, root=None):
    trust = ssl.create_default_context(cafile=root) if root else True
    async with ClientSession() as session, session.ws_connect(
        url, compress=15 if deflate else 0, max_msg_size=0, ssl=trust
    ) as peer:
        opened(peer)
        if purpose == "echo":
            for message in ["", "h\u00e9llo \U0001f600", bytes(range(256)), "x" * 200_000, bytes(200_000)]:
                await send(peer, message)
                answer = await peer.receive()
                print("same" if answer.data == message else "different", flush=True)
            await peer.close(code=3001, message=b"bye")
            print(f"closed {peer.close_code} bye", flush=True)
        else:
            await send(peer, purpose)
            while (message := await peer.receive()).type in (WSMsgType.TEXT, WSMsgType.BINARY):
                print(message.data, flush=True)
            closed(message)


side, compression, *rest = sys.argv[1:]
deflate = compression == "deflate"
asyncio.run(server(deflate) if side == "server" else client(deflate, *rest))

"""A headless Chromium as WebSocket client: `browser.py URL` serves a page to it, which talks to the URL,
and prints what the page found as one line of JSON: the extensions, what came back of a text, of a long
text, of bytes, and how the end was."""
import http.server
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading

PAGE = """<!doctype html><script>
const found = {same: []};
const messages = ['', 'h\\u00e9llo \\u{1F600}', 'compressible '.repeat(8000),
                  new Uint8Array(256).map((_, i) => i), new Uint8Array(100000).fill(7)];
const isSame = (sent, data) => typeof sent === 'string' ? sent === data
    : data instanceof ArrayBuffer && data.byteLength === sent.length
      && new Uint8Array(data).every((byte, i) => byte === sent[i]);
const socket = new WebSocket(URL_OF_SERVER);
socket.binaryType = 'arraybuffer';
socket.onopen = () => { found.extensions = socket.extensions; socket.send(messages[0]); };
socket.onmessage = ({data}) => {
  found.same.push(isSame(messages[found.same.length], data));
  const next = messages[found.same.length];
  if (next === undefined) socket.close(3001, 'bye'); else socket.send(next);
};
socket.onclose = ({code, reason, wasClean}) => {
  found.code = code; found.reason = reason; found.wasClean = wasClean;
  fetch('/found', {method: 'POST', body: JSON.stringify(found)});
};
</script>"""

url = sys.argv[1]
answered = threading.Event()


class Page(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/":
            self.answer(200, PAGE.replace("URL_OF_SERVER", json.dumps(url)).encode())
        else:
            self.answer(404, b"")

    def do_POST(self):
        found = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(204, b"")
        print(found.decode(), flush=True)
        answered.set()


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
with tempfile.TemporaryDirectory(prefix="towpath-browser-", ignore_cleanup_errors=True) as profile:
    browser = subprocess.Popen(
        [
            "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-component-update", "--no-first-run",
            "--no-proxy-server", f"--user-data-dir={profile}",
            f"http://127.0.0.1:{server.server_port}/",
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0,
    )
    answered.wait(90)
    os.killpg(browser.pid, signal.SIGTERM)
    browser.wait(20)
sys.exit(0 if answered.is_set() else 1)

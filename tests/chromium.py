"""A headless Chromium, driven over two pipes by its DevTools protocol: JSON messages, each ended by a zero byte.

`python tests/chromium.py data/watch.html "#stage-4" results/watch.png` takes a picture of one element.
"""

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NAMES, PATIENCE = ("chromium", "chromium-browser", "google-chrome"), 120
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
         "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"]


def find():
    """The path of Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One page of one browser; `close` ends both. `trouble` is what the console and the network complained of."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        # Chromium reads from 3 and writes to 4: the shell puts our ends there
        command = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", find(), *FLAGS,
                   f"--user-data-dir={self.profile.name}"]
        self.process = subprocess.Popen(command, pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL)
        os.close(theirs_in), os.close(theirs_out)
        self.to, self.back, self.numbers = os.fdopen(ours_out, "wb"), ours_in, itertools.count(1)
        self.session, self.trouble, self.events, self.rest = None, [], [], b""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method, **parameters):
        """The result of one command; what happened meanwhile is kept."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        self.to.write(json.dumps(message | ({"sessionId": self.session} if self.session else {})).encode() + b"\0")
        self.to.flush()
        while (reply := self._read()).get("id") != number:
            self._note(reply)
        if "error" in reply:
            raise RuntimeError(f"{method}: {reply['error']['message']}")
        return reply["result"]

    def _read(self):
        while b"\0" not in self.rest:
            if not select.select([self.back], [], [], PATIENCE)[0]:
                raise RuntimeError(f"Chromium has said nothing for {PATIENCE} seconds")
            if not (piece := os.read(self.back, 1 << 20)):
                raise RuntimeError("Chromium has ended")
            self.rest += piece
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def _note(self, event):
        name, given = event.get("method"), event.get("params", {})
        self.events.append(name)
        if name == "Runtime.exceptionThrown":
            self.trouble.append(given["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        elif name == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.trouble.append(given["entry"]["text"])
        elif name == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            self.trouble.append(str(given["args"]))
        elif name == "Network.requestWillBeSent" and not given["request"]["url"].startswith("file:"):
            self.trouble.append(f"a request to {given['request']['url']}")
        elif name == "Page.javascriptDialogOpening":
            self.trouble.append("a dialog")
            self.send("Page.handleJavaScriptDialog", accept=True)

    def open(self, path, width=1280, height=900, dark=False):
        """Load a file from disk, at a width and in a colour scheme, and wait until it is drawn."""
        self.size(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.trouble.clear(), self.events.clear()
        self.send("Page.navigate", url=Path(path).absolute().as_uri())
        while "Page.loadEventFired" not in self.events:
            self._note(self._read())
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def size(self, width, height=900, scale=1):
        """Make the window so large, in CSS pixels."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def run(self, script):
        """The value of a JavaScript expression; a promise is awaited."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"].get("exception", {}).get("description", "failed"))
        return found["result"].get("value")

    def picture(self, path, **clip):
        """Save a picture of the window, or of clip: x, y, width, height, scale."""
        more = {"clip": {"scale": 1, **clip}, "captureBeyondViewport": True} if clip else {}
        Path(path).write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png", **more)["data"]))

    def close(self):
        self.send("Browser.close")
        self.process.wait(10)
        self.to.close(), os.close(self.back), self.profile.cleanup()


if __name__ == "__main__":
    source, selector, out = sys.argv[1:]
    page = Page()
    page.open(source)
    box = page.run(f"document.querySelector({json.dumps(selector)}).getBoundingClientRect().toJSON()")
    page.picture(out, x=0, y=box["y"], width=1280, height=box["height"])
    page.close()

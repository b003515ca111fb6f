"""Drives headless Chromium as a user does: keys, mouse, fingers, screenshots. Uses the DevTools protocol over two
pipes."""
import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
PATIENCE = 60  # seconds; for one answer on a busy machine


def installed():
    return shutil.which("chromium")


def check(true, *what):
    if not true:
        raise AssertionError(what)


@contextlib.contextmanager
def chromium():
    """Provides a tab that is closed at the end. If Chromium is not installed, the program exits with code SKIPPED."""
    if not installed():
        print("Chromium is not installed")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        browser = Chromium(folder)
        try:
            yield browser
        finally:
            browser.close()


class Chromium:
    """One tab. `errors` and `requests` collect the errors of its console and the requests of its network."""

    def __init__(self, folder):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        # Chromium reads commands from descriptor 3 and answers on 4.
        shell = 'exec "$@" 3<&%d 4>&%d' % (theirs_in, theirs_out)
        command = [installed(), "--headless", "--no-sandbox", "--disable-gpu", "--no-proxy-server", "--no-first-run",
                   "--remote-debugging-pipe", "--user-data-dir=" + os.path.join(folder, "chromium"), "about:blank"]
        self.log = open(os.path.join(folder, "chromium.log"), "wb")
        self.process = subprocess.Popen(["bash", "-c", shell, "bash"] + command, pass_fds=(theirs_in, theirs_out),
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        os.close(theirs_in)
        os.close(theirs_out)
        self.answers, self.commands = ours_in, ours_out
        self.buffer, self.number, self.session = b"", 0, None
        self.errors, self.requests, self.events = [], [], []
        targets = self.call("Target.getTargets")["targetInfos"]
        tab = next(target for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=tab["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        finally:
            self.process.wait()
            self.log.close()

    def message(self, deadline):
        while b"\0" not in self.buffer:
            if not select.select([self.answers], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise TimeoutError("Chromium did not answer within %d s" % PATIENCE)
            got = os.read(self.answers, 1 << 20)
            if not got:
                raise EOFError("Chromium ended")
            self.buffer += got
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def note(self, event):
        method, parameters = event.get("method", ""), event.get("params", {})
        self.events.append(method)
        if method == "Runtime.exceptionThrown":
            self.errors.append(parameters["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Runtime.consoleAPICalled":
            self.errors.append("console.%s: %s" % (parameters["type"], parameters["args"]))
        elif method == "Log.entryAdded":
            self.errors.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def call(self, method, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.message(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]))
                return answer["result"]
            self.note(answer)

    def wait_for(self, method):
        deadline = time.monotonic() + PATIENCE
        while method not in self.events:
            self.note(self.message(deadline))

    def open(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def value(self, expression):
        """Returns the value of a JavaScript expression, after the page has been drawn."""
        whole = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(%s))))" % expression
        answer = self.call("Runtime.evaluate", expression=whole, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError("%s: %s" % (expression, answer["exceptionDetails"]))
        return answer["result"].get("value")

    def look(self, width, height, dark=False, phone=False):
        """Sets the size of the window and the colour scheme that the user prefers."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1,
                  mobile=phone)
        self.call("Emulation.setTouchEmulationEnabled", enabled=phone)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def key(self, key, shift=False):
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=8 if shift else 0,
                      windowsVirtualKeyCode={"ArrowUp": 38, "ArrowDown": 40, "Tab": 9, "Enter": 13}.get(key, 0),
                      **(text if kind == "keyDown" else {}))

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(self, x, y, to_x, to_y):
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.mouse("mouseMoved", to_x, to_y, button="left", buttons=1)
        self.mouse("mouseReleased", to_x, to_y, button="left", clickCount=1)

    def double_click(self, x, y):
        for count in (1, 2):
            self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=count)
            self.mouse("mouseReleased", x, y, button="left", clickCount=count)

    def fingers(self, *paths):
        """Moves fingers together, each along a path of (x, y), and then lifts them."""
        for step, points in enumerate(zip(*paths)):
            self.call("Input.dispatchTouchEvent", type="touchStart" if step == 0 else "touchMove",
                      touchPoints=[{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(points)])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

"""Controls a headless Chromium by its DevTools protocol through two pipes: messages are JSON objects, each ended by a zero byte."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import time

PROGRAM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
SECONDS = 60  # time limit for an answer
KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


class Chromium:
    """One page. `errors` holds its console errors and warnings, and uncaught exceptions, since it was opened."""

    def __init__(self, profile):
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()
        # The program reads descriptor 3 and writes descriptor 4, so our ends are first moved away from these numbers.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (to_browser, from_browser)]
        self._process = subprocess.Popen(
            [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
             "--disable-background-networking", f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(3, 4),
            preexec_fn=lambda: (os.dup2(ends[0], 3), os.dup2(ends[1], 4)))
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        self._read, self._number, self._session, self._events, self.errors = b"", 0, None, [], []
        page = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log":
            self.call(f"{domain}.enable")

    def close(self):
        self._session = None
        self.call("Browser.close")
        self._process.wait(SECONDS)
        os.close(self._to)
        os.close(self._from)

    def _message(self):
        end = time.monotonic() + SECONDS
        while b"\0" not in self._read:
            if not select.select([self._from], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"chromium says nothing for {SECONDS} s")
            more = os.read(self._from, 1 << 16)
            if not more:
                raise EOFError("chromium has ended")
            self._read += more
        message, _, self._read = self._read.partition(b"\0")
        return json.loads(message)

    def _event(self, message):
        kind, about = message.get("method"), message.get("params", {})
        self._events.append(kind)
        if kind == "Runtime.exceptionThrown":
            self.errors.append(about["exceptionDetails"].get("exception", {}).get("description", about["exceptionDetails"]["text"]))
        elif kind == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.errors.append(str([a.get("value") for a in about["args"]]))
        elif kind == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.errors.append(about["entry"]["text"] + " " + about["entry"].get("url", ""))

    def call(self, method, **parameters):
        """Calls a method of the protocol and returns its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters} | ({"sessionId": self._session} if self._session else {})
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data):]
        while (answer := self._message()).get("id") != self._number:
            self._event(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, file, width=1200, height=900, scheme="light"):
        self.errors.clear()
        self._events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        if why := self.call("Page.navigate", url=file.resolve().as_uri()).get("errorText"):
            raise FileNotFoundError(f"{file}: {why}")
        while "Page.loadEventFired" not in self._events:
            self._event(self._message())

    def value(self, script):
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def drag(self, x, y, dx, dy):
        for kind, to, buttons in ("mousePressed", 0, 1), ("mouseMoved", 1, 1), ("mouseReleased", 1, 0):
            self.call("Input.dispatchMouseEvent", type=kind, x=x + to * dx, y=y + to * dy, button="left", buttons=buttons, clickCount=1)

    def press(self, key):
        for kind in "keyDown", "keyUp":
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key])

    def screenshot(self):
        """The whole page as a PNG in base64."""
        return self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]

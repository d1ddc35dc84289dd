// SPDX-License-Identifier: Apache-2.0
// A browser without a window, driven over two pipes by its own protocol (--remote-debugging-pipe): needs Node and Chromium,
// nothing else. What it notices: errors of the page, messages of its console, and requests that leave the page's file.
"use strict";
const { spawn, spawnSync } = require("child_process");
const fs = require("fs"), os = require("os"), path = require("path");

function find() {
  const names = process.env.CHROMIUM ? [process.env.CHROMIUM] : ["chromium", "chromium-browser", "google-chrome"];
  return names.find(n => spawnSync(n, ["--version"], { stdio: "ignore" }).status === 0);
}

async function open(options = {}) {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), "reprise-browser-"));
  const child = spawn(find(), ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking",
    "--no-first-run", "--user-data-dir=" + home, "--remote-debugging-pipe", "--window-size=" + (options.size || "1280,1600")],
  { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const ended = new Promise(done => child.once("exit", done));
  const [to, from] = [child.stdio[3], child.stdio[4]];
  const calls = new Map(), listeners = [];
  let next = 1, rest = "";

  from.on("data", chunk => {
    const parts = (rest + chunk.toString("utf8")).split("\0");
    rest = parts.pop();
    for (const text of parts) {
      const message = JSON.parse(text), call = calls.get(message.id);
      if (call) { calls.delete(message.id); message.error ? call.fail(new Error(message.error.message)) : call.done(message.result); }
      else listeners.forEach(f => f(message));
    }
  });
  to.on("error", () => {});
  const send = (method, params = {}, sessionId) => new Promise((done, fail) => {
    calls.set(next, { done, fail });
    to.write(JSON.stringify({ id: next++, method, params, sessionId }) + "\0");
  });

  // A page, of a file or an address, with what it said and what it asked for.
  async function page(file, { dark = false, media = "" } = {}) {
    const { targetId } = await send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
    const call = (method, params) => send(method, params, sessionId);
    const said = [], requests = [];
    let loaded;
    const isLoaded = new Promise(done => { loaded = done; });
    listeners.push(m => {
      if (m.sessionId !== sessionId) return;
      if (m.method === "Runtime.exceptionThrown") said.push(m.params.exceptionDetails.exception?.description || m.params.exceptionDetails.text);
      if (m.method === "Runtime.consoleAPICalled") said.push(m.params.args.map(a => a.value).join(" "));
      if (m.method === "Log.entryAdded") said.push(m.params.entry.text);
      if (m.method === "Network.requestWillBeSent") requests.push(m.params.request.url);
      if (m.method === "Page.loadEventFired") loaded();
    });
    for (const domain of ["Runtime", "Log", "Network", "Page"]) await call(domain + ".enable");
    await call("Emulation.setEmulatedMedia", { media, features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
    await call("Page.navigate", { url: /^http:/.test(file) ? file : "file://" + path.resolve(file) });
    await isLoaded;
    const run = async text => {
      const r = await call("Runtime.evaluate", { expression: text, awaitPromise: true, returnByValue: true });
      if (r.exceptionDetails) throw new Error(r.exceptionDetails.exception?.description || r.exceptionDetails.text);
      return r.result.value;
    };
    await run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    return {
      said, requests, run, call,
      key: async key => {
        for (const type of ["keyDown", "keyUp"])
          await call("Input.dispatchKeyEvent", { type, key, text: type === "keyDown" && key.length === 1 ? key : undefined });
        await run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
      },
      mouse: (type, x, y, more) => call("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount: 1, ...more }),
      // clip: {x, y, width, height}, or the whole page
      screenshot: async (to, clip, scale = 1) => {
        const { cssContentSize: all } = await call("Page.getLayoutMetrics");
        const { data } = await call("Page.captureScreenshot", { captureBeyondViewport: true, clip: { ...(clip || all), scale } });
        fs.writeFileSync(to, Buffer.from(data, "base64"));
      },
      pdf: async () => Buffer.from((await call("Page.printToPDF", {})).data, "base64"),
    };
  }
  const close = async () => {
    send("Browser.close").catch(() => {});
    const timer = setTimeout(() => child.kill("SIGKILL"), 3000);
    await ended;
    clearTimeout(timer);
    fs.rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  };
  return { page, close, pid: child.pid };
}

module.exports = { find, open };

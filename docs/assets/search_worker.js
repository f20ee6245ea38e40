// The search runs in a Worker, which browsers do not start for pages of file://. There, this class
// takes the place of Worker and runs the script in a hidden frame of the page.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      frame.contentDocument.open();  // so that no later load of the empty page replaces it
      frame.contentDocument.write("<!doctype html><head></head>");
      frame.contentDocument.close();
      const inside = frame.contentWindow;
      // What the script posts goes to the page.
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}));
      inside.importScripts = (...urls) => Promise.all(urls.map(one => load(frame, one)));
      this.loaded = load(frame, url);
      this.inside = inside;
    }
    // What the page posts goes to the script, once it is loaded.
    postMessage(data) {
      this.loaded.then(() => this.inside.dispatchEvent(new MessageEvent("message", {data})));
    }
  };
  const load = (frame, url) => new Promise((resolve, reject) => {
    const script = frame.contentDocument.createElement("script");
    script.src = new URL(url, document.baseURI);
    script.onload = resolve;
    script.onerror = reject;
    frame.contentDocument.head.append(script);
  });
}

// Hands the trace to Perfetto's page in the frame: ask until it answers, then send the bytes. Nothing leaves this host.
"use strict";
window.addEventListener("DOMContentLoaded", async () => {
  const frame = document.getElementById("viewer"), note = document.getElementById("perfetto-note");
  note.textContent = "Loading the trace …";
  const answer = await fetch(frame.dataset.trace);
  if (!answer.ok) { note.textContent = "The trace could not be loaded."; return; }
  const buffer = await answer.arrayBuffer();
  note.textContent = "Starting Perfetto …";
  const ask = setInterval(() => frame.contentWindow.postMessage("PING", window.location.origin), 100);
  window.addEventListener("message", (event) => {
    if (event.source !== frame.contentWindow || event.origin !== window.location.origin || event.data !== "PONG") return;
    clearInterval(ask);
    if (note.hidden) return;
    note.hidden = true;
    frame.contentWindow.postMessage({ perfetto: { buffer, title: frame.dataset.title } }, window.location.origin);
  });
});

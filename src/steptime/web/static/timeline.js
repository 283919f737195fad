// A trace as a picture: one track per thread, spans under the spans that hold them. Loaded on request.
"use strict";
const ROW = 18, AXIS = 22, TITLE = 18, DEEPEST = 24, LEAST_SPAN = 0.01;
const TINTS = ["#8ecae6", "#ffb703", "#a8dadc", "#f4a261", "#b7e4c7", "#e5989b", "#cdb4db", "#ffd6a5", "#9bf6ff", "#caffbf"];
const tint = (name) => { let sum = 0; for (const letter of name) sum = (sum * 31 + letter.charCodeAt(0)) >>> 0; return TINTS[sum % TINTS.length]; };
const formatTime = (microseconds) => microseconds >= 1e6 ? (microseconds / 1e6).toPrecision(4) + " s"
  : microseconds >= 1e3 ? (microseconds / 1e3).toPrecision(4) + " ms" : microseconds.toPrecision(4) + " µs";

const tracksOf = (events) => {
  const names = new Map(), tracks = new Map();
  for (const event of events) {
    const key = event.pid + "/" + event.tid;
    if (event.ph === "M" && event.name === "thread_name") names.set(key, event.args.name);
    if (event.ph !== "X" || !(event.dur >= 0)) continue;
    if (!tracks.has(key)) tracks.set(key, []);
    tracks.get(key).push({ name: event.name, start: event.ts, end: event.ts + event.dur, depth: 0 });
  }
  return [...tracks].map(([key, spans]) => {
    spans.sort((a, b) => a.start - b.start || b.end - a.end);
    const open = [];
    let deepest = 0;
    for (const span of spans) {
      while (open.length && open[open.length - 1].end <= span.start) open.pop();
      span.depth = Math.min(open.length, DEEPEST);
      deepest = Math.max(deepest, span.depth);
      open.push(span);
    }
    return { name: names.get(key) || "thread " + key, spans, rows: deepest + 1 };
  }).sort((a, b) => b.spans.length - a.spans.length);
};

class Timeline {
  constructor(canvas, note, events) {
    this.canvas = canvas; this.note = note; this.tracks = tracksOf(events); this.chosen = null;
    this.spans = this.tracks.flatMap((track) => track.spans);
    this.last = this.spans.reduce((most, span) => Math.max(most, span.end), 1);
    this.start = 0; this.end = this.last;
    let top = AXIS;
    for (const track of this.tracks) { track.top = top + TITLE; top = track.top + track.rows * ROW + 4; }
    this.height = top;
    canvas.dataset.spans = this.spans.length;
    this.listen();
    this.resize();
  }
  listen() {
    const { canvas } = this;
    let dragged = null;
    canvas.addEventListener("pointerdown", (event) => { dragged = event.offsetX; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointerup", () => { dragged = null; });
    canvas.addEventListener("pointermove", (event) => {
      if (dragged === null) { this.choose(this.at(event.offsetX, event.offsetY)); return; }
      this.move((dragged - event.offsetX) / this.width);
      dragged = event.offsetX;
    });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 0.8 : 1.25, event.offsetX / this.width);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const ways = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all", Home: "all" };
      if (ways[event.key]) this.view(ways[event.key]);
      else if (event.key === "n" || event.key === "p") this.step(event.key === "n" ? 1 : -1);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
    new MutationObserver(() => this.draw()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }
  view(way) {
    if (way === "in") this.zoom(0.5, 0.5);
    if (way === "out") this.zoom(2, 0.5);
    if (way === "left") this.move(-0.2);
    if (way === "right") this.move(0.2);
    if (way === "all") this.show(0, this.last);
  }
  zoom(factor, place) {
    const centre = this.start + place * (this.end - this.start);
    const span = Math.max(LEAST_SPAN, Math.min(this.last, (this.end - this.start) * factor));
    this.show(centre - place * span, centre - place * span + span);
  }
  move(share) { const by = share * (this.end - this.start); this.show(this.start + by, this.end + by); }
  show(start, end) {
    const shift = start < 0 ? -start : end > this.last ? this.last - end : 0;
    this.start = Math.max(0, start + shift); this.end = Math.min(this.last, end + shift);
    this.canvas.dataset.shown = `${this.start} ${this.end}`;
    this.draw();
  }
  step(by) {
    const track = this.tracks.find((track) => track.spans.includes(this.chosen)) || this.tracks[0];
    const place = track.spans.indexOf(this.chosen) + by;
    const span = track.spans[Math.max(0, Math.min(track.spans.length - 1, place))];
    if (span.start < this.start || span.end > this.end) this.show(span.start - (span.end - span.start), span.end + (span.end - span.start));
    this.choose(span);
  }
  at(x, y) {
    const time = this.start + x / this.width * (this.end - this.start);
    const slack = (this.end - this.start) / this.width;
    const track = this.tracks.find((track) => y >= track.top && y < track.top + track.rows * ROW);
    const row = track && Math.floor((y - track.top) / ROW);
    return track && track.spans.find((span) => span.depth === row && span.start - slack <= time && span.end + slack >= time);
  }
  choose(span) {
    if (!span || span === this.chosen) return;
    this.chosen = span;
    this.note.textContent = `${span.name}: ${formatTime(span.end - span.start)}, from ${formatTime(span.start)}`;
    this.draw();
  }
  resize() {
    const scale = window.devicePixelRatio || 1;
    this.width = this.canvas.parentElement.clientWidth;
    this.canvas.width = this.width * scale; this.canvas.height = this.height * scale;
    this.canvas.style.height = this.height + "px";
    this.pen = this.canvas.getContext("2d");
    this.pen.setTransform(scale, 0, 0, scale, 0, 0);
    this.draw();
  }
  draw() {
    const { pen } = this, style = getComputedStyle(this.canvas);
    pen.fillStyle = style.backgroundColor; pen.fillRect(0, 0, this.width, this.height);
    pen.font = "12px system-ui, sans-serif"; pen.textBaseline = "middle";
    this.ticks(style.color);
    for (const track of this.tracks) {
      pen.fillStyle = style.color;
      pen.fillText(track.name, 4, track.top - TITLE / 2);
      this.track(track, style.color);
    }
  }
  ticks(colour) {
    const span = this.end - this.start, rough = span / 8, power = 10 ** Math.floor(Math.log10(rough));
    const size = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough);
    this.pen.fillStyle = colour;
    for (let tick = Math.ceil(this.start / size) * size; tick <= this.end; tick += size) {
      const x = (tick - this.start) / span * this.width;
      this.pen.fillRect(x, AXIS - 6, 1, 5);
      this.pen.fillText(formatTime(tick), x + 4, AXIS / 2);
    }
  }
  track(track, colour) {
    const { pen } = this, scale = this.width / (this.end - this.start), full = [];
    for (const span of track.spans) {
      if (span.end < this.start || span.start > this.end) continue;
      const left = Math.max(0, (span.start - this.start) * scale), right = Math.min(this.width, (span.end - this.start) * scale);
      if (right < (full[span.depth] || 0)) continue; // this pixel is painted already
      const wide = Math.max(1, right - left), y = track.top + span.depth * ROW;
      full[span.depth] = left + Math.max(1, wide);
      pen.fillStyle = tint(span.name);
      pen.fillRect(left, y, wide > 3 ? wide - 1 : wide, ROW - 2);
      if (span === this.chosen) { pen.strokeStyle = colour; pen.lineWidth = 2; pen.strokeRect(left + 1, y + 1, Math.max(2, wide - 2), ROW - 4); }
      if (wide > 40) this.label(span.name, left, y, wide);
    }
  }
  label(name, left, y, wide) {
    const letters = Math.floor((wide - 8) / 6.6);
    this.pen.fillStyle = "#1b1b1f";
    this.pen.fillText(name.length > letters ? name.slice(0, Math.max(1, letters - 1)) + "…" : name, left + 4, y + ROW / 2 - 1);
  }
}

window.addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("show-timeline"), place = document.getElementById("timeline");
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    const answer = await fetch(button.dataset.trace), note = document.getElementById("span-note");
    if (!answer.ok) { button.textContent = "The trace could not be loaded"; return; }
    const { traceEvents } = await answer.json();
    place.hidden = false;
    button.hidden = true;
    const timeline = new Timeline(place.querySelector("canvas"), note, traceEvents);
    place.addEventListener("click", (event) => { if (event.target.dataset.view) timeline.view(event.target.dataset.view); });
    place.querySelector("canvas").focus();
  });
});

// The form's fields are the query: a change asks for the same address with them and puts the answer in place.
"use strict";
const draw = () => {
  for (const chart of document.querySelectorAll("[data-spec]")) {
    const spec = JSON.parse(document.getElementById(chart.dataset.spec).textContent);
    // Expressions are interpreted, not compiled: the page allows no code made from text.
    const quiet = { renderer: "svg", actions: false, defaultStyle: false, tooltip: { disableDefaultStyle: true } };
    if (window.vegaEmbed) vegaEmbed(chart, spec, { ast: true, ...quiet });
  }
};
const turn = () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* storage is switched off */ }
};
const address = (form) => {
  const words = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value) words.append(name, value);
  return form.getAttribute("action") + "?" + words;
};
const show = async (url, remember) => {
  const focus = document.activeElement, mark = focus && [focus.name, focus.value, focus.id];
  const answer = await fetch(url);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const main = page.getElementById("main");
  if (!answer.ok || !main) { window.location.assign(url); return; }
  document.getElementById("main").replaceWith(main);
  document.title = page.title;
  if (remember) history.pushState(null, "", url);
  const same = [...main.querySelectorAll("input, select")].find((one) =>
    mark && (mark[2] ? one.id === mark[2] : one.name === mark[0] && one.value === mark[1]));
  if (same) same.focus();
  draw();
};
document.addEventListener("change", (event) => {
  const form = event.target.form;
  if (form && form.id === "query") show(address(form), true);
});
document.addEventListener("submit", (event) => {
  if (event.target.id === "query") { event.preventDefault(); show(address(event.target), true); }
});
document.addEventListener("click", (event) => {
  if (event.target.id === "copy") navigator.clipboard.writeText(window.location.href);
  if (event.target.id === "theme") turn();
  const source = event.target.dataset && event.target.dataset.copy;
  if (source) navigator.clipboard.writeText(document.getElementById(source).textContent).then(() => { event.target.textContent = "Copied"; });
});
document.addEventListener("keydown", (event) => {
  const busy = event.ctrlKey || event.metaKey || event.altKey;
  const types = document.activeElement.matches("select, textarea, input:not([type=checkbox])");
  if (busy || types) return;
  if (event.key === "t") turn();
  const first = document.querySelector(".facets input") || document.querySelector("main input");
  if (event.key === "/" && first) { event.preventDefault(); first.focus(); }
});
window.addEventListener("popstate", () => show(window.location.href, false));
window.addEventListener("DOMContentLoaded", () => { document.getElementById("theme").hidden = false; draw(); });

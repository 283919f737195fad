// The fields of the form are the query: a change fetches its page and replaces the main part.
"use strict";
const draw = () => {
  for (const button of document.querySelectorAll("#theme, #copy, [data-copy]")) button.hidden = false; // dead without scripts
  for (const chart of document.querySelectorAll("[data-spec]")) {
    const spec = JSON.parse(document.getElementById(chart.dataset.spec).textContent);
    // Expressions are interpreted, not compiled: the page allows no code made from text.
    // Letters and lines have the colours of the page, by its style sheet.
    const quiet = { renderer: "svg", actions: false, defaultStyle: false, tooltip: { disableDefaultStyle: true }, config: { background: "transparent" } };
    if (window.vegaEmbed) vegaEmbed(chart, spec, { ast: true, ...quiet });
  }
};
const turn = () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* storage is switched off */ }
};
// Browsers give the clipboard only to pages of this machine and to encrypted ones.
const copy = async (text, button) => {
  if (!navigator.clipboard) { window.prompt("Copy this", text); return; }
  await navigator.clipboard.writeText(text);
  button.textContent = "Copied";
};
const formUrl = (form) => {
  const parameters = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value) parameters.append(name, value);
  return form.getAttribute("action") + "?" + parameters;
};
// An incomplete query, such as scaling without its batch, is explained next to the form, which stays as it is.
const showProblem = (url, main) => {
  const answer = document.querySelector(".answer"), sentence = main && main.querySelector("#sentence");
  if (!answer || !sentence) { window.location.assign(url); return; }
  sentence.setAttribute("role", "alert");
  answer.replaceChildren(sentence);
};
let requests = 0;
const show = async (url, remember) => {
  const request = ++requests, focus = document.activeElement, mark = focus && [focus.name, focus.value, focus.id];
  let answer, text;
  try { answer = await fetch(url, { headers: { Accept: "text/html" } }); text = await answer.text(); } catch { window.location.assign(url); return; }
  if (request !== requests) return; // a newer query was sent meanwhile
  const page = new DOMParser().parseFromString(text, "text/html");
  const main = page.getElementById("main");
  if (!answer.ok) { showProblem(url, main); return; }
  for (const old of document.querySelectorAll("details[data-facet]")) {
    const now = main.querySelector(`details[data-facet="${old.dataset.facet}"]`);
    if (now) now.open = old.open || now.querySelector(":checked") !== null;
  }
  document.getElementById("main").replaceWith(main);
  document.title = page.title;
  if (remember) history.pushState(null, "", url);
  const same = [...main.querySelectorAll("input, select")].find((field) =>
    mark && (mark[2] ? field.id === mark[2] : field.name === mark[0] && field.value === mark[1]));
  if (same) same.focus();
  draw();
};
document.addEventListener("change", (event) => {
  const form = event.target.form;
  if (form && form.id === "query") show(formUrl(form), true);
});
document.addEventListener("submit", (event) => {
  if (event.target.id === "query") { event.preventDefault(); show(formUrl(event.target), true); }
});
document.addEventListener("click", (event) => {
  if (event.target.id === "copy") copy(window.location.href, event.target);
  if (event.target.id === "theme") turn();
  const source = event.target.dataset && event.target.dataset.copy;
  if (source) copy(document.getElementById(source).textContent, event.target);
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
window.addEventListener("DOMContentLoaded", draw);

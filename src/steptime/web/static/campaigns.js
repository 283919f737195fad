// Fetches the same page again while it is visible and replaces the campaigns. Open lists stay open.
"use strict";
const put = (page) => {
  const old = document.getElementById("campaigns"), now = page.getElementById("campaigns");
  if (now.innerHTML === old.dataset.text) return;
  const open = [...old.querySelectorAll("details[open]")].map((details) => details.id);
  const focus = document.activeElement && document.activeElement.closest("details");
  const text = now.innerHTML;
  old.replaceWith(now);
  now.dataset.text = text;
  for (const id of open) { const same = document.getElementById(id); if (same) same.open = true; }
  const same = focus && document.getElementById(focus.id);
  if (same) same.querySelector("summary").focus();
};
const look = async () => {
  const said = document.getElementById("looking");
  try {
    const answer = await fetch(window.location.href);
    if (!answer.ok) throw new Error(String(answer.status));
    put(new DOMParser().parseFromString(await answer.text(), "text/html"));
    said.hidden = true;
  } catch {
    said.textContent = "The guide does not answer. What is shown is from before.";
    said.hidden = false;
  }
};
const wait = () => {
  const seconds = Number(document.getElementById("campaigns").dataset.seconds);
  setTimeout(async () => { if (!document.hidden) await look(); wait(); }, 1000 * seconds);
};
window.addEventListener("DOMContentLoaded", wait);

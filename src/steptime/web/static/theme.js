// Before anything is painted: the theme that was chosen last, else the system's.
"use strict";
try { const theme = localStorage.getItem("theme"); if (theme) document.documentElement.dataset.theme = theme; } catch { /* storage is switched off */ }

// Sortable tables with filters and search, and plots. Pages are readable without this file. It works from file:// and without a network.
"use strict";
(() => {
  /** Load a classic script from the folder of the page. */
  const load = (file) =>
    new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = file;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${file} is missing beside this page: build the leaderboard again`));
      document.head.append(script);
    });

  /** An element with its attributes and children; texts are never read as markup. */
  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  // --- tables ---

  /** Orders numbers by value, with empty cells last in both directions. */
  const emptyLast = (compare) => (a, b) => (a === "" || b === "" ? (a === "") - (b === "") : compare(Number(a), Number(b)));

  const enhance = (table) => {
    const columns = [...table.tHead.rows[0].cells];
    const choices = columns.flatMap((cell, i) => ("filter" in cell.dataset ? [i] : []));
    const names = columns.map((cell) => cell.textContent);
    const sorted = new DataTable(table, {
      paging: false,
      info: false,
      autoWidth: false,
      order: [],
      layout: { topStart: null, topEnd: null, bottomStart: null, bottomEnd: null },
      columnDefs: [{ targets: columns.flatMap((cell, i) => (cell.classList.contains("text") || i === 0 ? [] : [i])), type: "measured" }],
      language: { emptyTable: "No rows.", zeroRecords: "No row fits the search and the filters." },
    });
    const shown = element("output", { "aria-live": "polite", class: "quiet" });
    const count = () => (shown.textContent = `${sorted.rows({ search: "applied" }).count()} of ${sorted.rows().count()} rows`);
    sorted.on("draw", count);
    const search = element("input", { type: "search", autocomplete: "off" });
    search.addEventListener("input", () => sorted.search(search.value).draw());
    const controls = element("div", { class: "controls" }, element("label", {}, "Search", search));
    for (const i of choices) {
      const values = [...new Set(sorted.column(i).nodes().toArray().map((cell) => cell.textContent.trim()))].sort();
      const select = element("select", {}, element("option", { value: "" }, "all"), ...values.map((value) => element("option", { value }, value)));
      select.addEventListener("change", () =>
        sorted.column(i).search.fixed("choice", select.value ? (_, row) => cellText(row[i]) === select.value : null).draw());
      controls.append(element("label", {}, names[i], select));
    }
    controls.append(shown);
    table.closest(".scroll").before(controls);
    count();
  };

  /** Text of a cell as DataTables holds it: its HTML, or an object if the cell has data-order. */
  const cellText = (held) => {
    const box = document.createElement("template");
    box.innerHTML = typeof held === "string" ? held : held.display;
    return box.content.textContent.trim();
  };

  // --- plots ---

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /** The same JSON with every "var(--name)" replaced by that colour of the style sheet. */
  const coloured = (value) => {
    if (typeof value === "string") return value.replace(/^var\((--[\w-]+)\)$/, (_, name) => colour(name));
    if (Array.isArray(value)) return value.map(coloured);
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, coloured(inner)]));
    return value;
  };

  /** Layout of all plots; a plot's own layout takes precedence. */
  const template = () => {
    const axis = { gridcolor: colour("--line"), linecolor: colour("--edge"), zeroline: false, automargin: true };
    return {
      layout: {
        font: { color: colour("--ink"), family: "system-ui, sans-serif" },
        paper_bgcolor: colour("--paper"),
        plot_bgcolor: colour("--paper"),
        colorway: [1, 2, 3, 4, 5, 6, 7, 8].map((i) => colour(`--series-${i}`)),
        margin: { l: 60, r: 20, t: 30, b: 60 },
        legend: { orientation: "h", y: -0.3, font: { size: 11 } },
        modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--quiet"), activecolor: colour("--ink") },
        hoverlabel: { bgcolor: colour("--band"), bordercolor: colour("--edge"), font: { color: colour("--ink") } },
        xaxis: axis,
        yaxis: axis,
      },
    };
  };

  const draw = (source) => {
    const { data, layout } = coloured(JSON.parse(source.textContent));
    const box = document.getElementById(source.dataset.plot);
    return Plotly.react(box, data, { height: 420, ...layout, template: template() }, { responsive: true, displaylogo: false });
  };

  const start = async () => {
    const tables = [...document.querySelectorAll("table[data-sortable]")];
    if (tables.length) {
      await load("datatables.js");
      DataTable.ext.type.order["measured-asc"] = emptyLast((a, b) => a - b);
      DataTable.ext.type.order["measured-desc"] = emptyLast((a, b) => b - a);
      tables.forEach(enhance);
    }
    const plots = [...document.querySelectorAll("script[data-plot]")];
    if (plots.length) {
      await load("plotly.min.js");
      const all = () => plots.forEach(draw);
      all();
      for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", all);
    }
    document.documentElement.dataset.ready = "yes"; // tests in a browser wait for it
  };

  document.addEventListener("DOMContentLoaded", start);
})();

// Sortable tables with filters, search and a choice of columns, and plots. Pages are readable without this file. It works from file://
// and without a network. Other scripts of these pages use what window.archbench holds.
"use strict";
window.archbench = (() => {
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

  /** What the address says after # as name=value; an address that leads to an element says nothing. */
  const chosen = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");

  /** Write choices into the address, so that a link leads to what is shown; empty ones leave it. */
  const remember = (choices) => {
    const now = chosen();
    for (const [name, value] of Object.entries(choices)) value ? now.set(name, value) : now.delete(name);
    if (`#${now}` !== location.hash && (now.size || chosen().size)) history.replaceState(null, "", `#${now}`);
  };

  /** A select box with a label. */
  const selectBox = (name, values) => {
    const select = element("select", {}, element("option", { value: "" }, "all"), ...values.map((value) => element("option", { value }, value)));
    return [select, element("label", {}, name, select)];
  };

  // --- tables ---

  /** Orders numbers by value, with empty cells last in both directions. */
  const emptyLast = (compare) => (a, b) => (a === "" || b === "" ? (a === "") - (b === "") : compare(Number(a), Number(b)));

  /** Text of a cell as DataTables holds it: its HTML, or an object if the cell has data-order. */
  const cellText = (held) => {
    const box = document.createElement("template");
    box.innerHTML = typeof held === "string" ? held : held.display;
    return box.content.textContent.trim();
  };

  const enhance = (table, number) => {
    const key = (name) => (number ? `${name}${number}` : name);
    const wanted = chosen();
    const columns = [...table.tHead.rows[0].cells];
    const names = columns.map((cell) => cell.textContent);
    const having = (mark) => columns.flatMap((cell, i) => (mark in cell.dataset ? [i] : []));
    const numbers = columns.flatMap((cell, i) => (cell.classList.contains("text") || i === 0 ? [] : [i]));
    const shown = wanted.has(key("columns")) ? wanted.get(key("columns")).split(",").map(Number) : names.map((_, i) => i).filter((i) => !("more" in columns[i].dataset));
    const notes = (row) => [...row.querySelectorAll("[title]")].map(({ title }) => title);
    const texts = [...table.tBodies].flatMap((body) => [...body.rows]).map((row) => [row.textContent, row.dataset.search, ...notes(row)].join(" ").toLowerCase());
    const [at, direction] = (wanted.get(key("order")) ?? "").split("-");
    const sorted = new DataTable(table, {
      paging: false,
      info: false,
      autoWidth: false,
      order: names[at] === undefined ? [] : [[Number(at), direction === "desc" ? "desc" : "asc"]],
      layout: { topStart: null, topEnd: null, bottomStart: null, bottomEnd: null },
      columnDefs: [
        { targets: having("lower"), orderSequence: ["asc", "desc", ""] },
        { targets: numbers, type: "measured", orderSequence: ["desc", "asc", ""] },
        { targets: names.map((_, i) => i).filter((i) => i && !shown.includes(i)), visible: false },
      ],
      language: { emptyTable: "No rows.", zeroRecords: "No row fits the search and the filters." },
    });
    const output = element("output", { "aria-live": "polite", class: "quiet" });
    const count = () => (output.textContent = `${sorted.rows({ search: "applied" }).count()} of ${sorted.rows().count()} rows`);
    sorted.on("draw", count);
    sorted.on("order", () => {
      const [first] = sorted.order();
      remember({ [key("order")]: first && first[1] ? `${first[0]}-${first[1]}` : "" });
    });
    const search = element("input", { type: "search", autocomplete: "off" });
    const find = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      sorted.search.fixed("words", words.length ? (_, __, row) => words.every((word) => texts[row].includes(word)) : null).draw();
      remember({ [key("search")]: search.value });
    };
    search.addEventListener("input", find);
    const controls = element("div", { class: "controls" }, element("label", {}, "Search", search));
    for (const i of having("filter")) {
      const values = [...new Set(sorted.column(i).nodes().toArray().map((cell) => cell.textContent.trim()))].sort();
      const [select, label] = selectBox(names[i], values);
      const choose = () => {
        sorted.column(i).search.fixed("choice", select.value ? (_, row) => cellText(row[i]) === select.value : null).draw();
        remember({ [key(names[i])]: select.value });
      };
      select.addEventListener("change", choose);
      controls.append(label);
      if (values.includes(wanted.get(key(names[i])))) {
        select.value = wanted.get(key(names[i]));
        choose();
      }
    }
    if (having("more").length) controls.append(columnBox(sorted, names, shown, (list) => remember({ [key("columns")]: list.join(",") })));
    controls.append(output);
    table.closest(".scroll").before(controls);
    if (wanted.has(key("search"))) {
      search.value = wanted.get(key("search"));
      find();
    }
    if (table.dataset.task) tickable(table, controls);
    count();
  };

  /** Check boxes for the columns of a table; the first is always shown. */
  const columnBox = (sorted, names, shown, tell) => {
    const boxes = names.map((name, i) => {
      const box = element("input", { type: "checkbox" });
      box.checked = shown.includes(i);
      box.addEventListener("change", () => {
        sorted.column(i).visible(box.checked);
        tell(boxes.flatMap((each, j) => (j === 0 || each.checked ? [j] : [])));
      });
      return box;
    });
    return element("details", { class: "columns" }, element("summary", {}, "Columns"), ...boxes.slice(1).map((box, i) => element("label", {}, box, names[i + 1])));
  };

  const MOST = 6; // results side by side, as many as an address names

  /**
   * The address of a comparison, such as "compare.html#section=local%2Fequal&task=sst2&a=dan&b=lstm". `section` and `task` are "place" and
   * "task" of an entry of compare-data.js. `ids` are architectures, or "architecture~key" for one of several settings; more than MOST
   * are left out. `settings` are those of the page: "part" of the test units, "show".
   */
  const compareLink = (section, task, ids, settings = {}) => {
    const shown = ids.slice(0, MOST).map((id, i) => ["abcdef"[i], id]);
    return `compare.html#${new URLSearchParams([["section", section], ["task", task], ...shown, ...Object.entries(settings)])}`;
  };

  /** A check box in each row with outcomes; two of them lead to the page that compares. */
  const tickable = (table, controls) => {
    const link = element("a", { hidden: "" }, "");
    const ticked = [];
    const tell = () => {
      link.hidden = ticked.length < 2;
      link.textContent = ticked.length > MOST ? `Compare the first ${MOST} of ${ticked.length} ticked` : `Compare the ${ticked.length} ticked`;
      link.setAttribute("href", compareLink(table.dataset.section, table.dataset.task, ticked));
    };
    for (const row of table.querySelectorAll("tr[data-compare]")) {
      const name = row.cells[0].textContent.trim();
      const box = element("input", { type: "checkbox", "aria-label": `Compare ${name}` });
      box.addEventListener("change", () => {
        box.checked ? ticked.push(row.dataset.compare) : ticked.splice(ticked.indexOf(row.dataset.compare), 1);
        tell();
      });
      row.cells[0].prepend(box);
    }
    controls.append(link);
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
        legend: { orientation: "h", y: -0.3, font: { size: 11 }, maxheight: 2000 },
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
    // A long legend takes as much height as it needs, and not that of the plot. Its columns are as wide as the longest name.
    const names = data.filter(({ name, showlegend }) => name && showlegend !== false).map(({ name }) => name.length);
    const columns = Math.max(1, Math.floor(box.clientWidth / (50 + 6 * Math.max(0, ...names))));
    const lines = Math.ceil(names.length / columns);
    const size = { height: (layout.height ?? 420) + 14 * (box.clientWidth < 640 ? lines : Math.max(0, lines - 5)) };
    return Plotly.react(box, data, { ...layout, ...size, template: template() }, { responsive: true, displaylogo: false });
  };

  /** Draws each plot when it comes into view: plotly itself is the largest file of a page, and twenty plots take seconds. */
  const drawWhenSeen = (sources) => {
    let plotly;
    const drawn = new Set();
    const show = async (source) => {
      await (plotly ??= load("plotly.min.js"));
      await draw(source);
      drawn.add(source);
      document.getElementById(source.dataset.plot).dataset.drawn = "yes"; // tests in a browser wait for it
    };
    const seen = new IntersectionObserver(
      (entries) => {
        for (const entry of entries.filter((entry) => entry.isIntersecting)) {
          seen.unobserve(entry.target);
          show(sources.find((source) => source.dataset.plot === entry.target.id));
        }
      },
      { rootMargin: "400px" },
    );
    for (const source of sources) seen.observe(document.getElementById(source.dataset.plot));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach(draw));
    matchMedia("print").addEventListener("change", () => sources.forEach(show));
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
    if (plots.length) drawWhenSeen(plots);
    document.documentElement.dataset.ready = "yes"; // tests in a browser wait for it
  };

  document.addEventListener("DOMContentLoaded", start);
  return { MOST, chosen, compareLink, element, load, remember };
})();

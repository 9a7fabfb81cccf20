// The compare page: the choice is in the address after "#", the data in compare-data.js. Works from file://.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const SHOWN = 50;
  const form = document.getElementById("choice");
  const slots = document.getElementById("slots");
  const status = document.getElementById("status");
  const output = document.getElementById("comparison");
  const tasks = window.compareData?.tasks ?? [];
  let chosen = [];

  /** An element with its attributes and children; texts are never read as markup. */
  const element = (name, attributes, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  const option = ([value, text]) => element("option", { value }, text);
  const fill = (select, options, value) => {
    select.replaceChildren(...options.map(option));
    if (options.some(([known]) => known === value)) select.value = value;
  };

  // --- the choice ---

  const places = [...new Map(tasks.map((task) => [task.place, task.section]))];
  const current = () => tasks.find((task) => task.place === form.section.value && task.task === form.task.value);

  /** Apply a choice; unknown parts of it are replaced by the first section and task and the two best architectures. */
  const choose = (section, task, ids) => {
    fill(form.section, places, section);
    fill(form.task, tasks.filter(({ place }) => place === form.section.value).map(({ task, name }) => [task, name]), task);
    const known = current().results.map(({ id }) => id);
    chosen = [...new Set(ids.filter((id) => known.includes(id)))];
    for (const id of known) if (chosen.length < 2 && !chosen.includes(id)) chosen.push(id);
    show();
  };

  const chooseByAddress = () => {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const first = tasks.find((task) => task.units) ?? tasks[0];
    choose(wanted.get("section") ?? first.place, wanted.get("task") ?? first.task, wanted.getAll("a"));
  };

  const show = () => {
    const address = new URLSearchParams([["section", form.section.value], ["task", form.task.value], ...chosen.map((id) => ["a", id])]);
    history.replaceState(null, "", `#${address}`);
    const task = current();
    slots.replaceChildren(...chosen.map((id, i) => slot(task, id, i)));
    form.add.disabled = chosen.length >= task.results.length;
    const rows = chosen.map((id) => task.results.findIndex((result) => result.id === id));
    status.textContent = `On ${task.name}, ${task.section}: ${rows.map((row) => task.results[row].name).join(", ")}.`;
    output.replaceChildren(sideBySide(task, rows), ...rows.slice(1).flatMap((row) => examples(task, rows[0], row)));
  };

  const slot = (task, id, i) => {
    const select = element("select", {});
    const free = task.results.filter((result) => result.id === id || !chosen.includes(result.id));
    fill(select, [...free.map((result) => [result.id, result.name]), ...(chosen.length > 2 ? [["", "(remove)"]] : [])], id);
    select.addEventListener("change", () => {
      chosen = chosen.map((old, j) => (j === i ? select.value : old)).filter(Boolean);
      show();
      (slots.children[i] ?? slots.lastChild).querySelector("select").focus();
    });
    return element("label", {}, `Architecture ${i + 1}`, select);
  };

  // --- what is shown ---

  const table = (title, head, rows, textual) =>
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
      element("table", {},
        element("thead", {}, element("tr", {}, ...head.map((cell) => element("th", textual ? { scope: "col", class: "text" } : { scope: "col" }, cell)))),
        element("tbody", {}, ...rows.map(([name, ...cells]) =>
          element("tr", {}, element("th", { scope: "row" }, name), ...cells.map((lines) =>
            element("td", textual ? { class: "text" } : {}, ...[lines].flat().map((line) => element("div", {}, line)))))))));

  const link = ({ id, name }) => element("a", { href: `architecture-${encodeURIComponent(id.split("~")[0])}.html` }, name);
  const signed = (value) => (value > 0 ? "+" : value < 0 ? "−" : "") + Math.abs(value).toFixed(1);

  /** Results of one group were trained on the same budget and data; others, and those of protocol smoke, are not set against each other. */
  const comparable = (one, other) => one.group !== null && one.group === other.group;

  /** The p-value of two rows; undefined where one of them has no saved predictions or they are not comparable. */
  const pOf = (task, a, b) => (comparable(task.results[a], task.results[b]) ? task.p?.[Math.max(a, b)]?.[Math.min(a, b)] : undefined);

  const sideBySide = (task, rows) => {
    const results = rows.map((row) => task.results[row]);
    const difference = (result) => {
      if (result === results[0] || result.mean === null || results[0].mean === null) return "–";
      return comparable(result, results[0]) ? signed(result.mean - results[0].mean) : "not comparable";
    };
    const doubt = task.doubt ? ` (${task.doubt})` : "";
    const place = (tied) => (tied === null ? "not ranked" : (tied ? "shares the first place" : "behind the first") + doubt);
    const p = (row) => (pOf(task, rows[0], row) === undefined ? "–" : pOf(task, rows[0], row).toPrecision(2));
    const body = [
      [task.metric, ...results.map(({ score }) => score)],
      ["95 % interval", ...results.map(({ interval }) => interval ?? "–")],
      ["tie group", ...results.map(({ tied, interval }) => (interval === null ? "–" : place(tied)))],
      [`difference to ${results[0].name}${task.unit && `, ${task.unit}`}`, ...results.map(difference)],
      ["p of that difference, not corrected", ...rows.map(p)],
      ...compareData.measures.map((measure, i) => [measure, ...results.map(({ costs }) => costs[i])]),
      ["caveats", ...results.map(({ notes }) => (notes.length ? notes : "–"))],
    ];
    return table("Side by side", ["", ...results.map(link)], body, false);
  };

  /** The outcomes of a result's units, as numbers. */
  const outcomes = (task, row) => {
    const { codes } = task.results[row];
    return task.units.map((_, i) => task.levels[parseInt(codes.slice(i * task.width, (i + 1) * task.width), 36)]);
  };

  const examples = (task, first, other) => {
    const [a, b] = [task.results[first], task.results[other]];
    const title = element("h2", {}, `${a.name} and ${b.name}: differences`);
    if (!comparable(a, b)) return [title, element("p", {}, "Not comparable: the two have another budget or other data, or are of protocol smoke.")];
    if (!a.codes || !b.codes) return [title, element("p", {}, "One of the two has no saved predictions on the same test data.")];
    const [ours, theirs] = [outcomes(task, first), outcomes(task, other)];
    const gain = task.units.map((_, i) => (ours[i] - theirs[i]) * (task.lower ? -1 : 1));
    const better = (sign) => gain.flatMap((value, i) => (value * sign > 0 ? [i] : [])).sort((i, j) => Math.abs(gain[j]) - Math.abs(gain[i]) || i - j);
    const [wins, losses] = [better(1), better(-1)];
    const same = task.units.length - wins.length - losses.length;
    return [
      title,
      element("p", {}, `${task.units.length} test units: ${a.name} does better on ${wins.length}, ${b.name} on ${losses.length}, the same on ${same}.`),
      ...[[a, b, wins], [b, a, losses]].flatMap(([x, y, found]) => (found.length ? listed(task, x, y, found, x === a ? ours : theirs, x === a ? theirs : ours) : [])),
    ];
  };

  const listed = (task, x, y, found, outcomesOfX, outcomesOfY) => {
    // With one seed a class is right or wrong; a mean over seeds, or a unit of several words, is a share.
    const either = task.unit && !task.lower && task.levels.every((value) => value === 0 || value === 1);
    const share = (value) => either ? (value ? "right" : "wrong") : (task.unit ? `${(100 * value).toFixed(0)} %` : value.toFixed(2));
    const said = x.said && y.said;
    const cells = (i) => [task.units[i], share(outcomesOfX[i]), share(outcomesOfY[i]), ...(said ? [x, y].map((result) => task.words[result.said[i]] ?? "–") : [])];
    const head = ["test unit", `outcome of ${x.name}`, `outcome of ${y.name}`];
    if (said) head.push(`prediction of ${x.name} (seed ${x.seed})`, `prediction of ${y.name} (seed ${y.seed})`);
    const title = `${x.name} does better than ${y.name}: ${found.length > SHOWN ? `the first ${SHOWN} of ${found.length}` : `all ${found.length}`}`;
    return [element("h3", {}, title), table(title, head, found.slice(0, SHOWN).map(cells), true)];
  };

  if (!tasks.length) {
    output.textContent = "There is no result to compare yet.";
    form.hidden = true;
    return;
  }
  form.section.addEventListener("change", () => choose(form.section.value, form.task.value, chosen));
  form.task.addEventListener("change", () => choose(form.section.value, form.task.value, chosen));
  form.add.addEventListener("click", () => {
    chosen.push(current().results.find(({ id }) => !chosen.includes(id)).id);
    show();
    slots.lastChild.querySelector("select").focus();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", chooseByAddress);
  chooseByAddress();
});

// The advisor: finds, for each task that is asked for, the group trained on most examples within what the reader has, its best row and
// the cheapest that is almost as good. The question stands in the address.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("advisor");
  if (!form) return;
  const { chosen, element, remember } = window.archbench;
  const groups = JSON.parse(document.getElementById("advisor-data").textContent);
  const output = document.getElementById("advice");
  const fields = [...form.elements].filter((field) => field.name);
  const number = (name) => (form.elements[name].value === "" ? Infinity : Number(form.elements[name].value));

  const better = (group) => (a, b) => (group.lower ? a.score - b.score : b.score - a.score);

  /** Of the groups of one task, that with most examples within the limit; of equals that with most rows. */
  const groupOf = (ofTask) =>
    ofTask.filter((group) => group.examples <= number("examples")).sort((a, b) => b.examples - a.examples || b.rows.length - a.rows.length)[0];

  const link = (group, row) => element("a", { href: `${group.page}#${row.row}` }, row.name);
  const cost = (row) => (row.latency === null ? "not measured" : `${Number(row.latency.toPrecision(3))} ms`);

  const answer = (ofTask) => {
    const name = ofTask[0].name;
    const group = groupOf(ofTask);
    if (!group) {
      const least = Math.min(...ofTask.map((each) => each.examples));
      return element("p", {}, `${name}: nothing was trained on so few examples; the least is ${least.toLocaleString("en")}.`);
    }
    const limited = ["latency", "memory"].filter((limit) => number(limit) < Infinity);
    const unmeasured = group.rows.filter((row) => limited.some((limit) => row[limit] === null));
    const within = group.rows.filter((row) => limited.every((limit) => row[limit] !== null && row[limit] <= number(limit))).sort(better(group));
    const told = `Of ${group.rows.length} results on ${group.examples.toLocaleString("en")} examples (${group.section})`;
    const more = unmeasured.length ? `; ${unmeasured.length} were not measured` : "";
    const heading = element("h2", {}, element("a", { href: group.page }, name));
    if (!within.length) return element("section", {}, heading, element("p", {}, `${told}, none is within the limits${more}.`));
    const [best] = within;
    const points = Number(form.elements.points.value || 1);
    const close = within.filter((row) => Math.abs(row.score - best.score) <= points + 1e-9 && row.latency !== null);
    const cheapest = close.sort((a, b) => a.latency - b.latency)[0];
    const list = element("ul", {});
    list.append(element("li", { class: "advised" }, "Best: ", link(group, best), `, ${group.metric} ${best.shown}, ${cost(best)}.`));
    if (cheapest) list.append(element("li", { class: "advised" }, `Cheapest within ${points} point${points === 1 ? "" : "s"}: `, link(group, cheapest), `, ${cheapest.shown}, ${cost(cheapest)}.`));
    list.append(element("li", {}, `First place among all of them: ${group.verdict}.`));
    return element("section", {}, heading, element("p", {}, `${told}, ${within.length} are within the limits${more}.`), list);
  };

  const show = () => {
    const wanted = form.elements.task.value;
    const asked = groups.filter((group) => group.task === wanted || `type:${group.type}` === wanted);
    const tasks = [...new Set(asked.map((group) => group.task))];
    output.replaceChildren(...tasks.map((task) => answer(asked.filter((group) => group.task === task))));
  };

  const restore = () => {
    const wanted = chosen();
    form.reset();
    for (const field of fields) if (wanted.has(field.name)) field.value = wanted.get(field.name);
    show();
  };

  form.addEventListener("input", () => {
    show();
    remember(Object.fromEntries(fields.map((field) => [field.name, field.value])));
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", restore);
  restore();
});

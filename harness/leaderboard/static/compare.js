// The compare page: the choice is in the address after "#", the data of a task in a file of its own. Works from file://.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const { MOST, compareLink, element, load } = window.archbench;
  const SHOWN = 50; // rows of a list before "Show all"
  const form = document.getElementById("choice");
  const slots = document.getElementById("slots");
  const others = document.getElementById("others");
  const notice = document.getElementById("notice");
  const status = document.getElementById("status");
  const output = document.getElementById("comparison");
  const places = window.compareData?.tasks ?? [];
  let place; // the entry of places that is shown
  let task; // its data
  let chosen = []; // the results that are shown, of task.results
  let settings = {}; // part and show, as in the address

  const fill = (select, options, value) => {
    select.replaceChildren(...options.map(([known, text]) => element("option", { value: known }, text)));
    if (options.some(([known]) => known === value)) select.value = value;
  };

  const count = (number) => number.toLocaleString("en");
  const counted = (number, name) => `${count(number)} ${name}${number === 1 ? "" : "s"}`;

  // --- data ---

  const loading = new Map();

  /** The data of a file: a script, since a page on disk cannot fetch. */
  const dataOf = (file) => {
    if (!loading.has(file)) loading.set(file, load(encodeURIComponent(file)).then(() => window.compareTask));
    return loading.get(file);
  };

  /** Values of the test units from a coded row (see compare_page.py). */
  const decode = ([levels, width, rows], row) =>
    task.units.map((_, i) => levels[parseInt(rows[row].slice(i * width, (i + 1) * width), 36)]);

  const rowOf = (result) => task.results.indexOf(result);

  /** Outcomes of a result's units, undefined where its records have none. */
  const outcomes = (result) => (rowOf(result) < (task.outcomes?.[2].length ?? 0) ? decode(task.outcomes, rowOf(result)) : undefined);

  // --- the choice ---

  /** Why two results are not set against each other; empty if they are. */
  const reason = (first, other) => {
    if (task.never) return task.never;
    const found = first.group === other.group ? [] : task.reasons[first.group][other.group];
    return found.length ? `it differs in ${found.join(", ")}` : "";
  };

  /** The results that ids name, and what there is to say about it. The first one decides which others may stand beside it. */
  const named = (ids) => {
    const [results, said] = [[], []];
    for (const id of ids) {
      const exact = task.results.find((result) => result.id === id);
      const same = task.results.filter(({ architecture }) => architecture === id.split("~")[0]);
      const result = exact ?? same[0];
      if (!result) said.push(`There is no result of ${id} on ${place.name} in this section.`);
      else if (!results.includes(result)) {
        const why = results.length ? reason(results[0], result) : "";
        if (!exact) said.push(`${id} has ${counted(same.length, "setting")} here; taken is ${same.length > 1 ? "the first" : "this one"}: ${result.name}.`);
        if (why) said.push(`${result.name} is not shown beside ${results[0].name}: ${why}.`);
        else if (results.length < MOST) results.push(result);
        else said.push(`${result.name} is not shown: there is room for ${MOST}.`);
      }
    }
    return [results, said];
  };

  const comparable = (first) => task.results.filter((result) => result !== first && !reason(first, result));

  /** Show a choice. Without a known section or task it is the first there is; without a known result, the best ranked one and the next beside it. */
  const choose = async (section, id, ids, wanted) => {
    const inSection = places.filter((known) => known.place === section);
    const sought = inSection.length ? inSection : places;
    const known = sought.filter((each) => each.task === id);
    const found = known[0] ?? sought.find(({ compared }) => compared) ?? sought[0];
    const said = [];
    if (section && !inSection.length) said.push(`There is no section ${section}: shown is ${found.section}.`);
    if (id && !known.length) said.push(`There is no result on task ${id} in this section: shown is ${found.name}.`);
    place = found;
    output.setAttribute("aria-busy", "true");
    let data;
    try {
      data = await dataOf(found.file);
    } catch (error) {
      output.replaceChildren(element("p", { class: "notice" }, error.message));
      return;
    }
    if (place !== found) return; // another one was chosen meanwhile
    task = data;
    const [results, about] = named(ids);
    const best = task.results.find(({ tied }) => tied !== null) ?? task.results[0];
    chosen = results.length ? results : [best, ...comparable(best).slice(0, 1)];
    settings = wanted;
    show([...said, ...about]);
  };

  const chooseByAddress = () => {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const ids = [...wanted].filter(([key]) => /^[a-f]$/.test(key)).map(([, id]) => id);
    return choose(wanted.get("section"), wanted.get("task"), ids, { part: wanted.get("part") ?? "", show: wanted.get("show") ?? "" });
  };

  const address = () => {
    const set = Object.entries(settings).filter(([, value]) => value);
    return compareLink(place.place, place.task, chosen.map(({ id }) => id), Object.fromEntries(set)).replace(/^.*#/, "#");
  };

  /** Show what a reader chose by a control, as a step that "back" takes back. */
  const changed = async (...choice) => {
    history.pushState(null, "", location.hash || "#");
    await choose(...choice);
  };
  const withResults = (ids) => changed(place.place, place.task, ids, settings);

  const show = (said) => {
    fill(form.section, [...new Map(places.map((each) => [each.place, each.section]))], place.place);
    fill(form.task, places.filter((each) => each.place === place.place).map((each) => [each.task, each.name]), place.task);
    const parts = (task.parts ?? []).filter(({ members }) => members);
    fill(form.part, [["", "all"], ...parts.flatMap(({ by, names, sizes }) => names.map((name, i) => [`${by}: ${name}`, `${by}: ${name} (${count(sizes[i])})`]))], settings.part);
    fill(form.show, [...(judges() ? [["", "where only one makes an error"]] : []), ["differences", "where one does better"]], settings.show);
    settings = { part: form.part.value, show: judges() ? form.show.value : "" };
    for (const select of [form.part, form.show]) select.parentElement.hidden = select.options.length < 2 || (select === form.show && chosen.length < 2);
    history.replaceState(null, "", address());
    const free = comparable(chosen[0]).filter((result) => !chosen.includes(result));
    slots.replaceChildren(...chosen.map((result, i) => slot(result, i, free)));
    form.add.disabled = !free.length || chosen.length === MOST;
    others.replaceChildren(...notOffered());
    notice.replaceChildren(...said.map((text) => element("p", { class: "notice" }, text)));
    status.textContent = `On ${place.name}, ${place.section}: ${chosen.map(({ name }) => name).join(", ")}.`;
    const [first, ...rest] = chosen;
    output.replaceChildren(sideBySide(), ...(rest.length ? rest.flatMap((other) => examples(first, other)) : examples(first)));
    output.removeAttribute("aria-busy");
  };

  const slot = (result, i, free) => {
    const select = element("select", {});
    const offered = i === 0 ? task.results.filter((each) => each === result || !chosen.includes(each)) : [result, ...free];
    fill(select, [...(i ? [["", "(none)"]] : []), ...offered.map(({ id, name }) => [id, name])], result.id);
    select.addEventListener("change", async () => {
      await withResults(chosen.map(({ id }, j) => (j === i ? select.value : id)).filter(Boolean));
      (slots.children[i] ?? slots.lastChild).querySelector("select").focus();
    });
    return element("label", {}, `Architecture ${i + 1}`, select);
  };

  /** The results that may not stand beside the first one, with the reasons. */
  const notOffered = () => {
    const why = new Map();
    for (const result of task.results) {
      const found = result === chosen[0] ? "" : reason(chosen[0], result);
      if (found) why.set(found, [...(why.get(found) ?? []), result.name]);
    }
    if (!why.size) return [];
    const number = [...why.values()].flat().length;
    return [element("details", {},
      element("summary", {}, `${counted(number, "result")} of this task ${number === 1 ? "is" : "are"} not offered beside ${chosen[0].name}: why`),
      ...[...why].map(([found, names]) => element("p", {}, `${names.join(", ")}: ${found}.`)))];
  };

  // --- tables ---

  const table = (title, head, rows, textual) =>
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
      element("table", {},
        element("thead", {}, element("tr", {}, ...head.map((cell) => element("th", textual ? { scope: "col", class: "text" } : { scope: "col" }, cell)))),
        element("tbody", {}, ...rows.map(([name, ...cells]) =>
          element("tr", {}, element("th", { scope: "row" }, name), ...cells.map((lines) =>
            element("td", textual ? { class: "text" } : {}, ...[lines].flat().map((line) => element("div", {}, line)))))))));

  const link = ({ architecture, name }) => element("a", { href: `architecture-${encodeURIComponent(architecture)}.html` }, name);
  const signed = (value) => (value > 0 ? "+" : value < 0 ? "−" : "") + Math.abs(value).toFixed(task.digits);

  const sideBySide = () => {
    const [first] = chosen;
    const difference = (result) => (result === first || result.mean === null || first.mean === null ? "–" : signed(result.mean - first.mean));
    const doubt = task.doubt ? ` (${task.doubt})` : "";
    const rank = (tied) => (tied === null ? "not ranked" : (tied ? "shares the first place" : "behind the first place") + doubt);
    const p = (result) => task.p?.[Math.max(rowOf(result), rowOf(first))]?.[Math.min(rowOf(result), rowOf(first))]?.toPrecision(2) ?? "–";
    const body = [
      [task.metric, ...chosen.map(({ score }) => score)],
      ["95 % interval", ...chosen.map(({ interval }) => interval ?? "–")],
      ["place", ...chosen.map(({ tied, interval }) => (interval === null ? "–" : rank(tied)))],
      ...(chosen.length < 2 ? [] : [
        [`difference to ${first.name}${task.unit && `, ${task.unit}`}`, ...chosen.map(difference)],
        ["p-value of that difference, not corrected", ...chosen.map(p)],
      ]),
      ...compareData.measures.map((measure, i) => [measure, ...chosen.map(({ costs }) => costs[i])]),
      ["caveats", ...chosen.map(({ notes }) => (notes.length ? notes : "–"))],
    ];
    return table("Side by side", ["measure", ...chosen.map(link)], body, false);
  };

  // --- test units ---

  /** True if there is a best outcome of a unit: only then a lesser one is an error. */
  const judges = () => task.unit !== "";
  const errs = (outcome) => (task.lower ? outcome > 0 : outcome < 1);

  /** Numbers of the units in the chosen part. */
  const units = () => {
    const part = task.parts.find(({ by, members }) => members && settings.part.startsWith(`${by}: `));
    const members = part && decode(part.members, 0);
    return task.units.flatMap((_, i) => (!part || `${part.by}: ${members[i]}` === settings.part ? [i] : []));
  };

  /** What one result, or two beside each other, do on single test units. */
  const examples = (a, b) => {
    const title = element("h2", {}, b ? `${a.name} and ${b.name}: test units` : `${a.name}: test units`);
    const [ours, theirs] = [outcomes(a), b && outcomes(b)];
    if (!ours || (b && !theirs)) return [title, element("p", {}, `${b ? "One of the two" : "It"} has no saved predictions on the test data of the ranked results.`)];
    const some = units();
    const sort = (found, size) => found.sort((i, j) => size(j) - size(i) || i - j);
    const worse = (x, y) => (i) => (task.lower ? x[i] - y[i] : y[i] - x[i]); // how much worse x is
    const lost = (x) => (i) => (task.lower ? x[i] : 1 - x[i]);
    const where = settings.part ? ` of ${settings.part}` : "";
    const of = `${counted(some.length, "test unit")}${where}`;
    if (!b) {
      const wrong = judges() ? sort(some.filter((i) => errs(ours[i])), lost(ours)) : some;
      const says = judges() ? `${of}, ${count(wrong.length)} with an error.` : `${of}.`;
      return [title, ...about(), element("p", {}, says), ...byPart(a), ...listed(judges() ? `Errors of ${a.name}` : `Answers of ${a.name}`, [a], wrong)];
    }
    const alone = (x, y) => some.filter((i) => errs(x[i]) && !errs(y[i]));
    const better = (x, y) => some.filter((i) => worse(y, x)(i) > 0);
    const byErrors = form.show.value === "";
    const lists = byErrors
      ? [[`Errors of ${b.name} alone`, alone(theirs, ours), worse(theirs, ours)], [`Errors of ${a.name} alone`, alone(ours, theirs), worse(ours, theirs)]]
      : [[`${a.name} does better than ${b.name}`, better(ours, theirs), worse(theirs, ours)], [`${b.name} does better than ${a.name}`, better(theirs, ours), worse(ours, theirs)]];
    const both = some.filter((i) => errs(ours[i]) && errs(theirs[i])).length;
    const [fewer, more] = lists.map(([, found]) => found.length);
    const says = byErrors
      ? `${of}: only ${b.name} makes an error on ${count(fewer)}, only ${a.name} on ${count(more)}, both on ${count(both)}, neither on ${count(some.length - fewer - more - both)}.`
      : `${of}: ${a.name} does better on ${count(fewer)}, ${b.name} on ${count(more)}, the same on ${count(some.length - fewer - more)}.`;
    return [title, ...about(), element("p", {}, says), ...byPart(a, b), ...lists.flatMap(([name, found, size]) => listed(name, [a, b], sort(found, size)))];
  };

  /** Where the texts come from, or how to get them; the parts between backquotes are code. */
  const about = () => [element("p", { class: "quiet" }, ...task.about.split("`").map((text, i) => (i % 2 ? element("code", {}, text) : text)))];

  const byPart = (a, b) => {
    const results = b ? [a, b] : [a];
    return task.parts.map(({ by, names, sizes, scores, members }) => {
      const [part, known] = [members && decode(members, 0), members && judges()];
      const [ours, theirs] = [outcomes(a), b && outcomes(b)];
      const alone = (name, x, y) => count(task.units.filter((_, i) => part[i] === name && errs(x[i]) && !(y && errs(y[i]))).length);
      const errors = !known ? [] : b ? [`errors of ${a.name} alone`, `errors of ${b.name} alone`] : ["units with an error"];
      const body = names.map((name, i) => [
        name,
        count(sizes[i]),
        ...results.map((result) => scores[rowOf(result)][i] ?? "–"),
        ...(!known ? [] : b ? [alone(name, ours, theirs), alone(name, theirs, ours)] : [alone(name, ours)]),
      ]);
      const title = `By ${by}: ${results.map(({ name }) => name).join(" and ")}`;
      return element("details", {}, element("summary", {}, `By ${by}`),
        table(title, [by, "number", ...results.map(({ name }) => `${task.metric} of ${name}`), ...errors], body, false));
    });
  };

  /** Words with tags of an answer; those that the right answer does not have are marked, where the data say what is right. */
  const marked = (answer, right) => {
    if (!task.tagged || answer === null || right === null) return answer ?? "–";
    const known = new Set(right.split(" "));
    const made = element("span", {});
    for (const word of answer.split(" ")) made.append(known.has(word) ? word : element("mark", {}, word), " ");
    return made;
  };

  const listed = (title, results, found) => {
    if (!found.length) return [];
    // With one seed a class is right or wrong; a mean over seeds, or a unit of several words, is a share.
    const either = task.unit && !task.lower && task.outcomes[0].every((value) => value === 0 || value === 1);
    const share = (value) => (either ? (value ? "right" : "wrong") : task.unit ? `${(100 * value).toFixed(0)} %` : value.toFixed(2));
    const texts = (task.texts ?? []).map(({ name, values }) => [name, decode(values, 0)]);
    const gold = decode(task.gold, 0);
    const columns = results.map((result) => [result, outcomes(result), task.answered[rowOf(result)] && decode(task.answers, rowOf(result))]);
    const answered = columns.filter(([, , said]) => said);
    const head = [
      "test unit",
      ...texts.map(([name]) => (texts.length > 1 ? name : "text")),
      ...(gold.some((text) => text !== null) ? ["right answer"] : []),
      ...answered.map(([{ name, seed }]) => `answer of ${name} (seed ${seed})`),
      ...columns.map(([{ name }]) => `outcome of ${name}`),
    ];
    const cells = (i) => [
      task.units[i],
      ...texts.map(([, values]) => values[i] ?? "–"),
      ...(head.includes("right answer") ? [gold[i] ?? "–"] : []),
      ...answered.map(([, , said]) => marked(said[i], gold[i])),
      ...columns.map(([, values]) => share(values[i])),
    ];
    const part = (most) => table(title, head, found.slice(0, most).map(cells), true);
    const heading = element("h3", {}, `${title}: ${count(found.length)}`);
    if (found.length <= SHOWN) return [heading, part(SHOWN)];
    const first = part(SHOWN);
    const button = element("button", { type: "button" }, `Show all ${count(found.length)}, not the first ${SHOWN} alone`);
    button.addEventListener("click", () => {
      const all = part(found.length);
      first.replaceWith(all);
      button.remove();
      all.focus();
    });
    return [heading, first, button];
  };

  if (!places.length) {
    output.textContent = "There is no result to compare yet.";
    form.hidden = true;
    return;
  }
  const ids = () => chosen.map(({ id }) => id);
  form.section.addEventListener("change", () => changed(form.section.value, place.task, ids(), settings));
  form.task.addEventListener("change", () => changed(place.place, form.task.value, ids(), settings));
  for (const select of [form.part, form.show])
    select.addEventListener("change", () => changed(place.place, place.task, ids(), { part: form.part.value, show: form.show.value }));
  form.add.addEventListener("click", async () => {
    await withResults([...ids(), comparable(chosen[0]).find((result) => !chosen.includes(result)).id]);
    slots.lastChild.querySelector("select").focus();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", chooseByAddress);
  chooseByAddress();
});

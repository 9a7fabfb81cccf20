// The picture of the front page: one choice of data, rules and budget at a time, its rows filtered and sorted. The choices stand in the
// address.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("picture-controls");
  if (!form) return;
  const { chosen, element, remember } = window.archbench;
  const pictures = [...document.querySelectorAll(".picture")];
  const boxes = Object.fromEntries([...form.querySelectorAll("select")].map((box) => [box.name, box]));
  const output = form.querySelector("output");
  form.hidden = false;

  const current = () => pictures.find((picture) => picture.dataset.place === boxes.place.value);
  const rowsOf = (body) => [...body.rows].filter((row) => row.dataset.means);

  /** True for a row with a score on some task; the others failed or were left out on all. */
  const scored = (row) => [...row.cells].slice(2).some((cell) => /\d/.test(cell.textContent));

  /** The types of the tasks of a picture, that of the first column first. */
  const offerTypes = () => {
    const before = boxes.type.value;
    const types = [...new Set([...current().querySelectorAll("th[data-type]")].map((cell) => cell.dataset.type))];
    boxes.type.replaceChildren(...types.map((type) => element("option", { value: type }, type)));
    if (types.includes(before)) boxes.type.value = before;
  };

  /** The mean over the tasks of each type and their number, in the order of the types. */
  const meansOf = (row) => row.dataset.means.split(",").map((pair) => pair.split(" ").map(Number));

  const show = () => {
    for (const picture of pictures) picture.hidden = picture !== current();
    const type = boxes.type.value;
    const place = boxes.type.selectedIndex;
    const columns = [...current().querySelectorAll("thead th")];
    const tasks = columns.filter((cell) => cell.dataset.type === type && "counted" in cell.dataset).length;
    let shown = 0;
    let all = 0;
    for (const body of current().querySelectorAll("tbody")) {
      const rows = rowsOf(body).map((row) => ({ row, mean: meansOf(row)[place] }));
      rows.sort((a, b) => b.mean[1] - a.mean[1] || b.mean[0] - a.mean[0]);
      const fits = !boxes.sees.value || body.dataset.sees === boxes.sees.value;
      let here = 0;
      for (const { row, mean: [share, number] } of rows) {
        const few = number ? `${number} of ${tasks}` : "";
        row.querySelector(".mean").textContent = number && number === tasks ? (100 * share).toFixed(0) : few;
        row.hidden =
          !fits ||
          (!boxes.rows.value && !scored(row)) ||
          (boxes.family.value && row.dataset.family !== boxes.family.value) ||
          (boxes.method.value && row.dataset.method !== boxes.method.value);
        here += !row.hidden;
        body.append(row);
      }
      body.hidden = !here;
      shown += here;
      all += rows.length;
    }
    for (const cell of columns) cell.classList.toggle("chosen", cell.dataset.type === type);
    output.textContent = `${shown} of ${all} rows`;
  };

  const choose = () => {
    const wanted = chosen();
    for (const [name, box] of Object.entries(boxes)) {
      const value = wanted.get(name);
      if (value !== null && [...box.options].some((option) => option.value === value)) box.value = value;
      if (name === "place") offerTypes();
    }
    show();
  };

  form.addEventListener("change", (event) => {
    if (event.target === boxes.place) offerTypes();
    show();
    remember(Object.fromEntries(Object.entries(boxes).map(([name, box]) => [name, box.selectedIndex ? box.value : ""])));
  });
  addEventListener("hashchange", choose);
  choose();
});

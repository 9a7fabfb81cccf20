// Links to the compare page: for tables whose rows can be ticked, and for the page's own address.
"use strict";
/**
 * The address of a comparison, such as "compare.html#section=local%2Fequal&task=sst2&a=dan&b=lstm".
 * `section` and `task` are "place" and "task" of an entry of compare-data.js. `ids` are architectures, or "architecture~key" for one of several
 * settings; more than six are left out. `settings` are those of the page: "part" of the test units, "show".
 */
function compareLink(section, task, ids, settings = {}) {
  const shown = ids.slice(0, 6).map((id, i) => ["abcdef"[i], id]);
  return `compare.html#${new URLSearchParams([["section", section], ["task", task], ...shown, ...Object.entries(settings)])}`;
}

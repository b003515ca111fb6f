// Chooses the number that the cells of exposures and cameras show, and sorts tables by a click on a column's title.

const choice = document.getElementById("number");
if (choice) {
  choice.addEventListener("change", () => {
    for (const cell of document.querySelectorAll("#matrix td.ok, #matrix td.attention")) {
      cell.textContent = cell.getAttribute("data-" + choice.value);
    }
  });
}

// Sorts a table by a column: numbers by size ("3 / 40" by the first). Cells without text come last in both
// directions.
function sortBy(table, column, ascending) {
  const number = table.tHead.rows[0].cells[column].className === "n";
  const key = (row) => {
    const text = row.cells[column].textContent;
    return number && text ? parseFloat(text) : text;
  };
  const keyed = Array.from(table.tBodies[0].rows, (row) => ({ row, key: key(row) }));
  const isLast = (one) => one.key === "" || Number.isNaN(one.key);
  const compare = (a, b) => (number ? a - b : a.localeCompare(b, "en", { numeric: true }));
  keyed.sort((a, b) => isLast(a) - isLast(b) || (isLast(a) ? 0 : (ascending ? 1 : -1) * compare(a.key, b.key)));
  table.tBodies[0].append(...keyed.map((one) => one.row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    head.firstElementChild.addEventListener("click", () => {
      const ascending = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sortBy(table, column, ascending);
    });
  });
}
